package manifest

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
)

// formatFits asserts the formats of JSON Schema 2020-12 (§3.2). A format of another name says nothing
// about a text, as the standard has it.
func formatFits(format, s string) bool {
	switch format {
	case "date-time":
		return isDateTime(s)
	case "date":
		return isDate(s)
	case "time":
		return isTime(s)
	case "duration":
		return isDuration(s)
	case "email":
		return isEmail(s, false)
	case "idn-email":
		return isEmail(s, true)
	case "hostname":
		return isHostname(s, false)
	case "idn-hostname":
		return isHostname(s, true)
	case "ipv4":
		ip, err := netip.ParseAddr(s)
		return err == nil && ip.Is4()
	case "ipv6":
		ip, err := netip.ParseAddr(s)
		return err == nil && ip.Is6() && ip.Zone() == ""
	case "uri", "iri":
		return isReference(s, format == "iri", true)
	case "uri-reference", "iri-reference":
		return isReference(s, format == "iri-reference", false)
	case "uri-template":
		return isTemplate(s)
	case "uuid":
		return isUUID(s)
	case "json-pointer":
		_, ok := jsondoc.Tokens(s)
		return ok
	case "relative-json-pointer":
		return isRelativePointer(s)
	case "regex":
		_, err := regexp.Compile(s)
		return err == nil
	default:
		return true
	}
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}

func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

// isTime takes RFC 3339's full-time. The sixtieth second is there only as the last of a UTC day.
func isTime(s string) bool {
	if len(s) < 9 || s[2] != ':' || s[5] != ':' {
		return false
	}
	h, okH := twoDigits(s[0:2], 23)
	m, okM := twoDigits(s[3:5], 59)
	sec, okS := twoDigits(s[6:8], 60)
	if !okH || !okM || !okS {
		return false
	}
	zone := s[8:]
	if zone[0] == '.' {
		digits := strings.TrimLeft(zone[1:], "0123456789")
		if digits == zone[1:] {
			return false
		}
		zone = digits
	}
	offset, ok := zoneMinutes(zone)
	if !ok {
		return false
	}
	return sec < 60 || (h*60+m-offset+2*24*60)%(24*60) == 23*60+59
}

func zoneMinutes(zone string) (int, bool) {
	if zone == "Z" || zone == "z" {
		return 0, true
	}
	if len(zone) != 6 || zone[3] != ':' || zone[0] != '+' && zone[0] != '-' {
		return 0, false
	}
	h, okH := twoDigits(zone[1:3], 23)
	m, okM := twoDigits(zone[4:6], 59)
	if zone[0] == '-' {
		return -(h*60 + m), okH && okM
	}
	return h*60 + m, okH && okM
}

func twoDigits(s string, most int) (int, bool) {
	if s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	n := int(s[0]-'0')*10 + int(s[1]-'0')
	return n, n <= most
}

// isDuration takes RFC 3339's form: weeks alone, or units in their order without a gap between them.
func isDuration(s string) bool {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return false
	}
	date, clock, timed := strings.Cut(rest, "T")
	if timed && clock == "" {
		return false
	}
	if strings.HasSuffix(date, "W") {
		return !timed && units(date, "W")
	}
	return units(date, "YMD") && units(clock, "HMS")
}

// units reads numbers, each with the next letter of order; it may start and end anywhere in order.
func units(s, order string) bool {
	at := -1
	for s != "" {
		rest := strings.TrimLeft(s, "0123456789")
		if rest == s || rest == "" {
			return false
		}
		i := strings.IndexByte(order, rest[0])
		if i < 0 || at >= 0 && i != at+1 {
			return false
		}
		at, s = i, rest[1:]
	}
	return true
}

func isEmail(s string, idn bool) bool {
	i := strings.LastIndexByte(s, '@')
	if i < 1 || i > 64 || len(s) > 254 || !idn && !ascii(s) {
		return false
	}
	local, domain := s[:i], s[i+1:]
	if inner, ok := strings.CutPrefix(domain, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		inner = strings.TrimPrefix(inner, "IPv6:")
		_, err := netip.ParseAddr(inner)
		return ok && err == nil && isLocal(local)
	}
	return isLocal(local) && isHostname(domain, idn)
}

func isLocal(s string) bool {
	if len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return !strings.ContainsAny(s[1:len(s)-1], "\"\\\r\n")
	}
	for _, atom := range strings.Split(s, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`()<>[]:;@\,"`, r) }) {
			return false
		}
	}
	return true
}

func isHostname(s string, idn bool) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if label == "" || utf8.RuneCountInString(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			word := r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			if !word && !(idn && r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))) {
				return false
			}
		}
	}
	return true
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// isReference takes an RFC 3986 address, or an RFC 3987 one.
func isReference(s string, iri, absolute bool) bool {
	if !iri && !ascii(s) || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\\\"<>^`{|}", r) }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || absolute && !u.IsAbs() {
		return false
	}
	inBrackets := u.Host != "" && u.Host[0] == '['
	return inBrackets || !strings.ContainsAny(u.Host, "[]") && (u.Host == "" || strings.Count(u.Host, ":") < 2)
}

// isTemplate looks for braces in pairs with a variable between them.
func isTemplate(s string) bool {
	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			return true
		}
		end := strings.IndexAny(s[i+1:], "{}")
		if s[i] == '}' || end < 1 || s[i+1+end] != '}' {
			return false
		}
		s = s[i+end+2:]
	}
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
			return false
		}
	}
	return true
}

func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	n := s[:len(s)-len(rest)]
	if n == "" || n != "0" && n[0] == '0' {
		return false
	}
	if rest == "#" {
		return true
	}
	_, ok := jsondoc.Tokens(rest)
	return ok
}
