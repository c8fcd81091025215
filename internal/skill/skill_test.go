package skill

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// found shows issues as "code line:column".
func found(issues []protocol.Issue) []string {
	var out []string
	for _, i := range issues {
		out = append(out, fmt.Sprintf("%s %d:%d", i.Code, i.Line, i.Column))
	}
	return out
}

var transit = Names{Pack: "transit", Verbs: []string{"trip.plan", "departures", "notes.list"}, Triggers: []string{"trip.delayed"}}

// taught is a skill that mentions every command of transit, with more text behind it.
func taught(more string) []byte {
	return []byte("# Transit\n\nPlan trips.\n\n`trip.plan` `departures` `notes.list`\n\n" + more)
}

// check runs Check on a body that begins in line 7.
func check(t *testing.T, more string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, found(Check(taught(more), transit))); diff != "" {
		t.Errorf("%s\n(-want +got)\n%s", more, diff)
	}
}

func Test_5_1_Lead(t *testing.T) {
	for name, c := range map[string]struct {
		src, title, lead string
		line             int
		want             []string
	}{
		"plain":                        {"# Transit\n\nPlan trips\nand more.\n", "Transit", "Plan trips and more.", 3, nil},
		"setext":                       {"Transit\n===\nLead\n", "Transit", "Lead", 3, nil},
		"front matter":                 {"---\nname: transit\ndescription: x\n---\n# T\nLead\n", "T", "Lead", 6, nil},
		"a rule is no front matter":    {"---\n# T\n\nLead\n", "T", "Lead", 4, nil},
		"comment and list before lead": {"# T\n<!-- c -->\n\n- a list\n\nLead\n", "T", "Lead", 6, nil},
		"definitions are no lead":      {"# T\n\n[a]: https://example.org\n\nLead [a]\n", "T", "Lead [a]", 5, nil},
		"no heading":                   {"Lead\n", "", "", 0, []string{"skill.lead 1:1"}},
		"a heading in a quote":         {"> # T\n\nLead\n", "", "", 0, []string{"skill.lead 1:1"}},
		"heading in a fence":           {"```\n# T\n```\nLead\n", "", "", 0, []string{"skill.lead 1:1"}},
		"no heading behind front":      {"---\nname: x\n---\ntext\n", "", "", 0, []string{"skill.lead 4:1"}},
		"no paragraph":                 {"\n #  Tü\n## Sub\ntext\n", "Tü", "", 0, []string{"skill.lead 2:5"}},
		"300 characters":               {"# T\n\n" + strings.Repeat("ü", 300), "T", strings.Repeat("ü", 300), 3, nil},
		"301 characters":               {"# T\n\n  " + strings.Repeat("ü", 301), "T", strings.Repeat("ü", 301), 3, []string{"skill.lead 3:3"}},
		"front matter is not YAML":     {"---\nname: [\n---\n# T\n\nLead\n", "T", "Lead", 6, []string{"skill.lead 1:1"}},
		"empty":                        {"", "", "", 0, []string{"skill.lead 1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, issues := Parse([]byte(c.src))
			if s.Title != c.title || s.Lead != c.lead || s.LeadLine != c.line {
				t.Errorf("title %q lead %q line %d", s.Title, s.Lead, s.LeadLine)
			}
			if diff := cmp.Diff(c.want, found(issues)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_5_1_FrontMatter(t *testing.T) {
	s, _ := Parse([]byte("---\r\nname: transit\r\ndescription: \"Plan: trips\"\r\nlicense: MIT\r\n---\r\n# T\r\n\r\nLead\r\n"))
	if s.Name != "transit" || s.Description != "Plan: trips" || s.Lead != "Lead" {
		t.Errorf("%+v", s)
	}
}

func Test_2_1_SkillIsUTF8WithoutBOM(t *testing.T) {
	for src, want := range map[string]string{"\xef\xbb\xbf# T\n\nL": "json.encoding 1:1", "# T\n\nä\xff": "json.encoding 3:2", "\xc3": "json.encoding 1:1"} {
		if diff := cmp.Diff([]string{want}, found(Check([]byte(src), transit))); diff != "" {
			t.Errorf("%q %s", src, diff)
		}
	}
}

// Secrets are put together here, so that no file holds one.
func join(parts ...string) string { return strings.Join(parts, "") }

const alnum = "q7Rk2Zp9Wm4Xc8Vb5Nt3Ls6Jd1Hf0GyTaEuIoPw"

func secrets() map[string]string {
	hex := strings.Repeat("9f3a7c1e5b08d264", 4)
	return map[string]string{
		"aws":             join("AK", "IA", "QZ7RK2PW9MX4CV8B"),
		"github classic":  join("gh", "p_", alnum[:36]),
		"github fine":     join("github_", "pat_", alnum[:30]),
		"gitlab":          join("gl", "pat-", alnum[:20]),
		"slack":           join("xo", "xb-", "184729301847-", alnum[:20]),
		"slack hook":      join("https://hooks.sl", "ack.com/services/T02QZ7RK2/B03PW9MX4/", alnum[:24]),
		"google":          join("AI", "za", alnum[:35]),
		"stripe":          join("sk_", "live_", alnum[:24]),
		"model":           join("sk", "-proj-", alnum[:32]),
		"model two":       join("sk", "-ant-api03-", alnum[:36]),
		"npm":             join("np", "m_", alnum[:36]),
		"pypi":            join("py", "pi-", alnum, alnum),
		"sendgrid":        join("S", "G.", alnum[:22], ".", alnum[:36]),
		"twilio":          join("S", "K", hex[:32]),
		"digitalocean":    join("do", "p_v1_", hex),
		"hugging":         join("h", "f_", alnum[:34]),
		"shopify":         join("shp", "at_", hex[:32]),
		"docker":          join("dckr_", "pat_", alnum[:27]),
		"databricks":      join("da", "pi", hex[:32]),
		"vault":           join("hv", "s.", alnum[:24]),
		"age":             join("AGE-SECRET", "-KEY-1", strings.ToUpper(alnum), strings.ToUpper(alnum[:19])),
		"private key":     join("-----BEGIN ", "OPENSSH PRIVATE", " KEY-----"),
		"private key old": join("-----BEGIN ", "PRIVATE", " KEY-----"),
		"jwt":             join("ey", "JhbGciOiJIUzI1NiJ9", ".ey", "JzdWIiOiIxMjM0NTY3ODkwIn0", ".dozjgNryP4J3jVmNHl0w5N"),
		"webhook":         join("wh", "sec_", alnum[:32]),
	}
}

func Test_5_2_Credentials(t *testing.T) {
	for name, secret := range secrets() {
		t.Run(name, func(t *testing.T) {
			check(t, "Use ü "+secret+" here.\n", "skill.credential 7:7")
			check(t, "<!-- "+secret+" -->\n", "skill.credential 7:6")
			check(t, "```\n"+secret+"\n```\n", "skill.credential 8:1")
		})
	}
	value := alnum[:16]
	for _, c := range []struct{ text, want string }{
		{"token: " + value, "7:8"},
		{`"api_key": "` + value + `"`, "7:13"},
		{"export ACME_API_KEY=" + value, "7:21"},
		{"acme --token " + value, "7:14"},
		{"client-secret = '" + value + "'", "7:18"},
		{join("pass", "word: hunt", "er2024"), "7:11"},
		{"Authorization: Bearer " + value, "7:23"},
		{"postgres://app:" + join("tr0ub4", "dor") + "@db.internal/prod", "7:16"},
		{"https://api.internal/x?access_token=" + value, "7:37"},
		{"token: QzRkWpMxCvBnTsLjDhFg", "7:8"},
	} {
		t.Run(c.text, func(t *testing.T) { check(t, c.text+"\n", "skill.credential "+c.want) })
	}
}

func Test_5_2_PlaceholdersAreNoCredentials(t *testing.T) {
	for _, text := range []string{
		"token: <TOKEN>", "api_key=YOUR_API_KEY", "api_key: your-api-key-123", "token: xxxx", "token = xxxxxxxxxxxxxxxx1", "password: ********",
		"token: $TOKEN_2026", "token: ${ACME_TOKEN1}", "token: {token}1234567", "token: {{ token }}", "password: \"…\"", "token: ...", "token: abc...xyz123",
		"--token TOKEN", "--password my-password-here", "secret: my_secret", "Authorization: Bearer <TOKEN>", "Authorization: Bearer $ACME_TOKEN_PROD_1",
		"postgres://user:password@localhost/db", "postgres://app:${DB_PASS1}@db/x", "https://user:pass@host.example/", join("gh", "p_", strings.Repeat("x", 36)),
		join("AK", "IA", "IOSFODNN7", "EXAMPLE"), "sk-xxxxxxxxxxxxxxxxxxxxxxxx", "The token: refreshed automatically.", "The password is asked for once.",
		"next_page_token: q7Rk2Zp9Wm4Xc8Vb", "token_url: https://id.example.org/oauth2/token", "password: op://vault/item1/field", "bearer authentication-methods", "the sk-internationalization-team",
		"commit 9f3a7c1e5b08d2649f3a7c1e5b08d2649f3a7c1e", "sha256:9f3a7c1e5b08d2649f3a7c1e5b08d264", "max_tokens: 4096", "The secret: passphrases.",
		"a token (hcpx connect)", "access key: none", "a uuid 123e4567-e89b-12d3-a456-426614174000", "token: `acme login` prints it",
	} {
		t.Run(text, func(t *testing.T) { check(t, text+"\n") })
	}
}

func Test_5_2_CredentialIsNotRepeated(t *testing.T) {
	secret := secrets()["stripe"]
	for _, i := range Check(taught("key "+secret), transit) {
		if strings.Contains(i.Message+i.Hint, secret[:12]) {
			t.Errorf("the message shows the secret: %s", i.Message)
		}
	}
}

func Test_5_2_HostPaths(t *testing.T) {
	for text, column := range map[string]int{
		"/home/ada/notes.txt": 1, "see `/home/ada`.": 6, "in /Users/ada/Library.": 4, "(/root/.ssh/id)": 2, `C:\Users\ada\x`: 1, `"C:\\Users\\ada"`: 2,
		`D:\data\x.csv`: 1, "E:/data/x": 1, `\\server\share\x`: 1, `"\\\\server\\share"`: 2, "PATH=/home/ada/bin": 6, "ü /home/ada": 3, "a:/home/ada/x": 3,
		`C:\Program Files\x`: 1, "--file=/Users/ada/f": 8,
	} {
		t.Run(text, func(t *testing.T) { check(t, text+"\n", fmt.Sprintf("skill.host-path 7:%d", column)) })
	}
}

func Test_5_2_OtherPathsAreNoHostPaths(t *testing.T) {
	for _, text := range []string{
		"~/.hcp/packs", "/usr/bin/git", "/tmp/x", "https://example.org/home/ada", "http://localhost:8080/Users/ada", "`^/home/[^/]+/`", "~/home/ada", "$X/home/ada",
		"src/home/ada", "/homework/x", "/home/<user>/x", "/home/$USER/x", "/home/{user}", "/home/", "/root", `\d:\d+`, `(?i:\w+)`, `[a-z]:\\d+`, `x:\s`,
		"http://x", "s:/a/b", `\\d+\\.\\d+`, `\\bfoo\\bbar`, `\w\\d`, "/home/*/x", "`/home/|/Users/`", "12:/30",
	} {
		t.Run(text, func(t *testing.T) { check(t, text+"\n") })
	}
}

func Test_5_2_OnlyDeclaredCommands(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"`hcpx exec transit trip.plan -- from=a`", nil},
		{"`hcpx exec transit trip.cancel`", []string{"skill.undeclared-command 7:20"}},
		{"`hcp exec transit trip.cancel`", []string{"skill.undeclared-command 7:19"}},
		{"hcpx exec transit trip.cancel is prose", nil},
		{"    hcpx exec transit trip.cancel", []string{"skill.undeclared-command 7:23"}},
		{"```\n$ hcpx exec --json --project x transit nope -- a=b\n```", []string{"skill.undeclared-command 8:40"}},
		{"```sh\nx=$(hcpx exec transit nope) && hcpx exec transit nope2\n```", []string{"skill.undeclared-command 8:23", "skill.undeclared-command 8:50"}},
		{"```\nhcpx exec \\\n  transit \\\n  nope\n```", []string{"skill.undeclared-command 10:3"}},
		{"`hcpx exec\ntransit nope`", []string{"skill.undeclared-command 8:9"}},
		{"`hcpx exec <pack_id> <verb_key>` `hcpx exec transit <verb_key>` `hcpx exec transit VERB_KEY` `hcpx exec transit …`", nil},
		{"`hcpx exec ledger nope` `ledger nope` `ledger__nope`", nil},
		{"`transit trip plan --from a` `transit departures` `hcpx transit notes list`", nil},
		{"`transit trip cancel`", []string{"skill.undeclared-command 7:10"}},
		{"`hcpx --json transit trip cancel`", []string{"skill.undeclared-command 7:22"}},
		{"`transit arrivals now`", []string{"skill.undeclared-command 7:10"}},
		{"`transit trip` `transit` `transit help` `transit --version` `transit <space> <sub>` `transit trip plan central`", nil},
		{"`a transit arrivals`", nil},
		{"```\ntransit arrivals now\n```", []string{"skill.undeclared-command 8:9"}},
		{"```console\n$ transit departures\ntransit delays: none\n$ transit arrivals\n```", []string{"skill.undeclared-command 10:11"}},
		{"```json\ntransit delays hcpx exec transit nope\n```", []string{"skill.undeclared-command 8:34"}},
		{"`transit__trip_plan` `transit__notes_list`", nil},
		{"`transit__trip_cancel`", []string{"skill.undeclared-command 7:2"}},
		{"```\n{\"name\": \"transit__nope\"}\n```", []string{"skill.undeclared-command 8:11"}},
		{"`transit__<key>` `transit__*` `mytransit__nope`", nil},
		{"`trip.cancel`", []string{"skill.maybe-command 7:2"}},
		{"`trip.delayed` `trip.json` `other.thing` `.trip.id` `trip`", nil},
		{"> - `hcpx exec transit nope`", []string{"skill.undeclared-command 7:24"}},
		{"## The `transit__nope` heading", []string{"skill.undeclared-command 7:9"}},
		{"<!-- `hcpx exec transit nope` -->", nil},
		{"\\`hcpx exec transit nope\\`", nil},
		{"ü `x` `hcpx exec transit nope`", []string{"skill.undeclared-command 7:26"}},
	} {
		t.Run(c.text, func(t *testing.T) { check(t, c.text+"\n", c.want...) })
	}
}

func Test_5_2_UntaughtCommand(t *testing.T) {
	for text, want := range map[string][]string{
		"`trip.plan` and `departures`":                        nil,
		"`transit trip plan`, `hcpx exec transit departures`": nil,
		"`transit__trip_plan` and\n\n    departures":          nil,
		"trip.plan in prose. `departures`":                    nil,
		"departures in prose only, `trip.plan`":               {"skill.untaught-command 1:1"},
		"nothing":                                             {"skill.untaught-command 1:1", "skill.untaught-command 1:1"},
	} {
		n := Names{Pack: "transit", Verbs: []string{"trip.plan", "departures"}}
		if diff := cmp.Diff(want, found(Check([]byte("# T\n\nLead.\n\n"+text+"\n"), n))); diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
	}
}

// A bomb of aliases and a staircase of sequences are findings; before, lint did not come back from them.
func Test_14_2_FrontMatterIsBounded(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	for name, front := range map[string]string{
		"aliases":   bomb + "name: *a11\n",
		"staircase": "x: " + strings.Repeat("- ", 1<<20) + "1\n",
		"large":     "x: " + strings.Repeat("y", 9<<10) + "\n",
		"a list":    "- name\n",
		"no text":   "name: [x]\n",
	} {
		_, issues := Parse([]byte("---\n" + front + "---\n# Notes\n\nKeep notes.\n"))
		if len(issues) != 1 || issues[0].Code != "skill.lead" || issues[0].Line != 1 {
			t.Errorf("%s: %v", name, issues)
		}
	}
	for front, want := range map[string]string{"": "", "name:\n": "", "name: 3\n": "3", "name: &n notes\nx: *n\n": "notes", "name: >\n  two\n  words\n": "two words\n", "# only a remark\n": ""} {
		s, issues := Parse([]byte("---\n" + front + "---\n# Notes\n\nKeep notes.\n"))
		if len(issues) != 0 || s.Name != want {
			t.Errorf("%q: name %q, %v", front, s.Name, issues)
		}
	}
}
