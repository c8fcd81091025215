package skill

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"hcpx/internal/order"
)

// vendor is one kind of credential that its form alone gives away: a literal that is searched for, and an
// expression for what begins with it.
type vendor struct {
	name     string
	literals string
	expr     func() *regexp.Regexp
}

// vendors are matched on the raw text: a secret in a comment is as public as one in a sentence.
var vendors = sync.OnceValue(func() []vendor {
	return []vendor{
		{"an AWS access key", "AKIA ASIA ABIA ACCA", lazy(`^[A-Z]{4}[A-Z0-9]{16}\b`)},
		{"a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", lazy(`^gh[pousr]_[A-Za-z0-9]{36,255}\b`)},
		{"a GitHub token", "github_pat_", lazy(`^github_pat_[A-Za-z0-9_]{22,255}\b`)},
		{"a GitLab token", "glpat- glptt- gldt- glrt- glcbt- glsoat-", lazy(`^gl[a-z]+-[A-Za-z0-9_-]{20,}`)},
		{"a Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", lazy(`^x[a-z]{3}-[A-Za-z0-9-]{10,}`)},
		{"a Slack webhook", "https://hooks.slack.com/", lazy(`^https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/-]{20,}`)},
		{"a Discord webhook", "https://discord.com/ https://discordapp.com/", lazy(`^https://[a-z.]+/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{30,}`)},
		{"a Google API key", "AIza", lazy(`^AIza[A-Za-z0-9_-]{35}`)},
		{"a Google OAuth secret", "GOCSPX-", lazy(`^GOCSPX-[A-Za-z0-9_-]{20,}`)},
		{"a Google access token", "ya29.", lazy(`^ya29\.[A-Za-z0-9_-]{20,}`)},
		{"a Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", lazy(`^[sr]k_[a-z]+_[A-Za-z0-9]{16,}`)},
		{"a webhook secret", "whsec_", lazy(`^whsec_[A-Za-z0-9+/=]{24,}`)},
		{"an API key of a model provider", "sk-", lazy(`^sk-(?:[a-z]+[0-9]*-){0,2}[A-Za-z0-9_]{20,}`)},
		{"an npm token", "npm_", lazy(`^npm_[A-Za-z0-9]{36}\b`)},
		{"a PyPI token", "pypi-", lazy(`^pypi-[A-Za-z0-9_-]{50,}`)},
		{"a SendGrid key", "SG.", lazy(`^SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},
		{"a Twilio key", "SK", lazy(`^SK[0-9a-f]{32}\b`)},
		{"a DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", lazy(`^do[opr]_v1_[0-9a-f]{64}\b`)},
		{"a Hugging Face token", "hf_", lazy(`^hf_[A-Za-z0-9]{30,}\b`)},
		{"a Shopify token", "shpat_ shpca_ shppa_ shpss_", lazy(`^shp[a-z]{2}_[0-9a-fA-F]{32}\b`)},
		{"a Docker token", "dckr_", lazy(`^dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`)},
		{"a Databricks token", "dapi", lazy(`^dapi[0-9a-f]{32}\b`)},
		{"a Vault token", "hvs. hvb. hvr.", lazy(`^hv[sbr]\.[A-Za-z0-9_-]{24,}`)},
		{"a Linear key", "lin_api_", lazy(`^lin_api_[A-Za-z0-9]{32,}`)},
		{"an Azure account key", "AccountKey=", lazy(`^AccountKey=[A-Za-z0-9+/]{60,}={0,2}`)},
		{"an age secret key", "AGE-SECRET-KEY-1", lazy(`^AGE-SECRET-KEY-1[0-9A-Z]{50,}`)},
		{"a private key", "-----BEGIN", lazy(`^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)},
		{"a JSON Web Token", "eyJ", lazy(`^eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	}
})

// secretWords end the names of things whose value is a secret.
const secretWords = `password passwort passwd passphrase pwd secret token apikey api_key api-key accesskey access_key access-key ` +
	`privatekey private_key private-key secretkey secret_key secret-key authkey auth_key auth-key credential`

var (
	userinfo = lazy(`^://[^\s/:@"'<>` + "`" + `]*:([^\s/@"'` + "`" + `]+)@[^\s/@]`)
	scheme   = lazy(`^(?:bearer|basic|Bearer|Basic|BEARER|BASIC)[ \t]+([A-Za-z0-9._~+/=-]{16,})`)
	assigned = lazy(`^s?["'` + "`" + `*]{0,3}(\s*(?:=>|:=|[:=])\s*|[ \t]+)["'` + "`" + `]{0,3}([^\s"'` + "`" + `,;()<>|\\]{8,})`)
)

// drawn are characters of which a random value has at least one, and words that begin like a token none.
const drawn = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// window is the most bytes behind a literal that an expression looks at, so that no text costs more than
// linear time.
const window = 2048

// credentials finds what looks like a secret (§5.2, HCP-14.2-5). A placeholder never does. The message
// names the kind and not the value.
func credentials(src string) []finding {
	var spots []spot
	for _, v := range vendors() {
		for literal := range strings.FieldsSeq(v.literals) {
			for at := range all(src, literal) {
				value := v.expr().FindString(ahead(src, at))
				if value == "" || at > 0 && nameByte(src[at-1]) && nameByte(literal[0]) && src[at-1] != '-' && src[at-1] != '.' {
					continue
				}
				if literal[0] == '-' || !placeholder(value) && entropy(value) >= 2.5 && strings.ContainsAny(value[len(literal):], drawn) {
					spots = append(spots, spot{at, at + len(value), v.name})
				}
			}
		}
	}
	low := lower(src)
	for at := range all(src, "://") {
		if m := userinfo().FindStringSubmatchIndex(ahead(src, at)); m != nil {
			if value := src[at+m[2] : at+m[3]]; !placeholder(value) && !example(value) {
				spots = append(spots, spot{at + m[2], at + m[3], "a password in an address"})
			}
		}
	}
	for _, word := range []string{"bearer", "basic"} {
		for at := range all(low, word) {
			if m := scheme().FindStringSubmatchIndex(ahead(src, at)); m != nil && random(src[at+m[2]:at+m[3]]) {
				spots = append(spots, spot{at + m[2], at + m[3], "a credential in a header"})
			}
		}
	}
	return report(append(spots, assignments(src, low)...))
}

// assignments finds secret values behind the names of secrets.
func assignments(src, low string) []spot {
	var out []spot
	for word := range strings.FieldsSeq(secretWords) {
		for at := range all(low, word) {
			end := at + len(word)
			m := assigned().FindStringSubmatchIndex(ahead(src, end))
			if m == nil {
				continue
			}
			start := at
			for start > 0 && at-start < 64 && nameByte(src[start-1]) {
				start--
			}
			if secret(low[start:end], src[end+m[2]:end+m[3]], src[end+m[4]:end+m[5]]) {
				out = append(out, spot{end + m[4], end + m[5], "the value of a secret"})
			}
		}
	}
	return out
}

// all yields the places of a literal.
func all(s, literal string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; ; at += len(literal) {
			i := strings.Index(s[at:], literal)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i
		}
	}
}

// ahead is the text from at on, as far as an expression looks.
func ahead(s string, at int) string { return s[at:min(len(s), at+window)] }

// lower is s with ASCII letters in lower case: offsets stay what they are.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// spot is where a credential stands.
type spot struct {
	from, to int
	kind     string
}

// report makes one finding of spots that overlap: the first rule's.
func report(spots []spot) []finding {
	order.By(spots, func(a, b spot) int { return cmp.Compare(a.from, b.from) })
	var out []finding
	end := 0
	for _, s := range spots {
		if s.from < end {
			continue
		}
		end = s.to
		out = append(out, finding{code: "skill.credential", at: s.from, message: "This looks like " + s.kind + "; a skill holds no credentials.",
			hint: "write a placeholder such as <TOKEN>, and let the binding bring the credential"})
	}
	return out
}

// secret says whether "key sep value" gives a secret away. A blank alone separates only an option from
// its value; tokens of paging are no secrets.
func secret(key, sep, value string) bool {
	if strings.TrimSpace(sep) == "" && !strings.HasPrefix(key, "--") {
		return false
	}
	for _, harmless := range []string{"page", "next", "cursor", "sync", "continuation", "max", "public"} {
		if strings.Contains(key, harmless) {
			return false
		}
	}
	value = strings.TrimRight(value, ".:!?*_])}")
	if strings.Contains(value, "://") {
		return false
	}
	if strings.Contains(key, "pass") || strings.Contains(key, "pwd") {
		return !placeholder(value) && !example(value) && len(value) >= 8 && mixed(value) && entropy(value) >= 2.5
	}
	return random(value)
}

// random says whether a value looks drawn rather than written: letters and digits with the entropy of a
// key, or a long run of both cases.
func random(s string) bool {
	if placeholder(s) || example(s) || len(s) < 8 {
		return false
	}
	if mixed(s) {
		return entropy(s) >= 3
	}
	lower, upper := strings.ToLower(s) != s, strings.ToUpper(s) != s
	return len(s) >= 20 && lower && upper && entropy(s) >= 3.5
}

// mixed says whether s has a letter and a digit.
func mixed(s string) bool {
	letter := func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
	return strings.ContainsFunc(s, letter) && strings.ContainsAny(s, "0123456789")
}

// placeholder says whether s stands for a secret instead of being one: <TOKEN>, $VAR, {token}, %TOKEN%,
// xxxx, ****, dots.
func placeholder(s string) bool {
	if strings.ContainsAny(s, "<>{}$%…[") || strings.Contains(s, "...") || strings.Contains(s, "***") {
		return true
	}
	low := strings.ToLower(s)
	for _, word := range []string{"xxxx", "example", "your", "redacted", "placeholder", "changeme", "change-me", "change_me"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// exampleWords are what a value is made of that only shows where a secret goes.
const exampleWords = ` a access admin api apikey auth client demo dummy enter fake foo bar here hidden id insert key my new
 none null pass passphrase passwd password private put pwd pw replace sample secret some string test the todo token user value `

// example says whether s is made of such words: my-token-here, API_KEY, or repeats a few characters.
func example(s string) bool {
	if entropy(s) < 2 {
		return true
	}
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' || r > 'z' })
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(exampleWords, " "+w+" ") }) ||
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	h := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			h -= p * math.Log2(p)
		}
	}
	return h
}
