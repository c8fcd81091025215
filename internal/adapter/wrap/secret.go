package wrap

import (
	"math"
	"slices"
	"strings"
)

// secret says why a static value looks like a credential (§3.3); "" when it does not. It knows the
// prefixes of common tokens, URLs with a password, names that mean a secret, and text that looks random.
// A placeholder such as <TOKEN> or YOUR_API_KEY is none.
func secret(name, value string) string {
	switch {
	case value == "" || example(value):
		return ""
	case knownToken(value):
		return "has the form of a token"
	case urlPassword(value):
		return "is a URL with a password in it"
	case secretName(name) && !harmless(value):
		return "stands under a name that means a secret"
	case random(value):
		return "looks like a key"
	}
	return ""
}

func example(value string) bool {
	upper := strings.ToUpper(value)
	if strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">") || strings.HasPrefix(value, "${") || strings.HasPrefix(upper, "YOUR") {
		return true
	}
	return strings.Trim(upper, "X*.-_") == "" || slices.Contains([]string{"CHANGEME", "CHANGE_ME", "EXAMPLE", "PLACEHOLDER", "REDACTED", "NONE"}, upper)
}

func knownToken(value string) bool {
	for _, prefix := range []string{
		"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xapp-", "sk-", "sk_live_", "rk_live_",
		"AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-", "hf_", "dop_v1_", "SG.", "shpat_", "AGE-SECRET-KEY-", "whsec_",
	} {
		if strings.HasPrefix(value, prefix) && len(value) >= len(prefix)+12 {
			return true
		}
	}
	jwt := strings.HasPrefix(value, "eyJ") && strings.Count(value, ".") == 2
	return jwt || strings.Contains(value, "-----BEGIN ") || strings.HasPrefix(value, "Bearer ") || strings.HasPrefix(value, "Basic ")
}

func urlPassword(value string) bool {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return false
	}
	_, password, ok := strings.Cut(authority[:at], ":")
	return ok && password != "" && !example(password)
}

// secretName looks at the last word of a name: TOKEN_URL is none, API_TOKEN is.
func secretName(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{
		"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "APIKEY", "API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY",
		"AUTH_KEY", "CREDENTIAL", "CREDENTIALS", "ACCESS_KEY_ID", "COOKIE",
	} {
		if upper == word || strings.HasSuffix(upper, "_"+word) {
			return true
		}
	}
	return false
}

// harmless is what stands under such a name without being the secret: a path, a URL, a number, a switch.
func harmless(value string) bool {
	if strings.ContainsAny(value[:1], "/~.") || strings.Contains(value, "://") {
		return true
	}
	if len(value) <= 8 && strings.Trim(value, "0123456789.") == "" {
		return true
	}
	return slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "none", "auto"}, strings.ToLower(value))
}

// random says whether one long word mixes upper case, lower case and digits as keys do.
func random(value string) bool {
	if len(value) < 24 || strings.ContainsAny(value, " /:,;.@{}()\t\n") {
		return false
	}
	var lower, upper, digit bool
	counts := map[rune]int{}
	total := 0
	for _, r := range value {
		lower = lower || 'a' <= r && r <= 'z'
		upper = upper || 'A' <= r && r <= 'Z'
		digit = digit || '0' <= r && r <= '9'
		counts[r]++
		total++
	}
	entropy := 0.0
	for _, n := range counts {
		p := float64(n) / float64(total)
		entropy -= p * math.Log2(p)
	}
	hex := !upper && digit && total >= 32 && strings.Trim(value, "0123456789abcdef") == ""
	return (lower && upper && digit && entropy > 3.7) || (hex && entropy > 3)
}
