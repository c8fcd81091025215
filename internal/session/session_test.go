package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/places"
	"hcpx/internal/protocol"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func Test_9_3_FlagsBeatTheEnvironmentBeatsTheUser(t *testing.T) {
	dir := tree(t, "work/")
	base := Inputs{Getenv: env(), Dir: dir + "/work", Closed: places.Places{Home: dir + "/home", Store: dir + "/home/.hcp"}, User: "ada"}
	full := env("HCP_SESSION", "ci", "HCP_PRINCIPAL", "agent:claude-code", "HCP_PROJECT", "apollo", "HCP_WORKSPACE", dir+"/work")
	cases := []struct {
		name string
		in   func(Inputs) Inputs
		want protocol.Session
	}{
		{"nothing said", func(in Inputs) Inputs { return in },
			protocol.Session{ID: "default", Principal: "human:ada", How: "the OS user"}},
		{"environment", func(in Inputs) Inputs { in.Getenv = full; return in },
			protocol.Session{ID: "ci", Principal: "agent:claude-code", Project: "apollo", How: "HCP_PRINCIPAL"}},
		{"flags", func(in Inputs) Inputs {
			in.Getenv, in.Flags = full, Flags{Session: "mine", As: "service:cron", Project: "gemini", Workspace: "."}
			return in
		}, protocol.Session{ID: "mine", Principal: "service:cron", Project: "gemini", How: "the flag --as"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Resolve(c.in(base))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Tenant, c.want.Dir, c.want.Workspace = "local", dir+"/work", dir+"/work"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_9_1_APrincipalWithoutTheFormIsUnauthenticated(t *testing.T) {
	for _, as := range []string{"ada", "human:", "human:Ada", "root:ada", "human:../x", "human:" + strings.Repeat("a", 65), "human:a b", "human:ada\n"} {
		s, err := Resolve(Inputs{Flags: Flags{As: as}, Getenv: env(), Dir: t.TempDir(), User: "ada"})
		if err == nil || err.Code != protocol.Unauthenticated || err.Hint == "" {
			t.Errorf("%q: %v", as, err)
		}
		if string(s.Principal) != as || s.How != "the flag --as" || s.ID != "default" || s.Dir == "" {
			t.Errorf("whoami cannot tell of %q: %+v", as, s)
		}
	}
	// A wrong flag beside it is said first: it is no denial, and nobody is judged by it (§9.7).
	if _, err := Resolve(Inputs{Flags: Flags{As: "ada", Project: "No"}, Getenv: env(), Dir: t.TempDir()}); err == nil || err.Code != protocol.UsageError {
		t.Errorf("two faults: %v", err)
	}
	if _, err := Resolve(Inputs{Getenv: env(), Dir: t.TempDir()}); err == nil || err.Code != protocol.Unauthenticated {
		t.Errorf("a user without a name: %v", err)
	}
}

func Test_9_3_TheOSUserIsAPerson(t *testing.T) {
	for user, want := range map[string]protocol.Principal{
		"ada": "human:ada", "Ada.Lovelace": "human:ada.lovelace", `CORP\Ada L`: "human:ada-l", "_www": "human:www", "jürgen": "human:j-rgen",
		"": "", "-": "", strings.Repeat("x", 99): protocol.Principal("human:" + strings.Repeat("x", 64)), "1000": "human:1000",
	} {
		if got := Person(user); got != want || got != "" && !got.Valid() {
			t.Errorf("%q is %q, want %q", user, got, want)
		}
	}
}

func Test_6_1_ProjectsAndSessionIDsHaveAForm(t *testing.T) {
	for project, want := range map[string]bool{"apollo": true, "a.b-c_d": true, "1": true, "A": false, "a..b": false, "../a": false, ".a": false,
		"": false, "a/b": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "ä": false, "a\n": false} {
		if protocol.Project(project) != want {
			t.Errorf("project %q is %v", project, !want)
		}
	}
	for _, f := range []Flags{{Project: "No"}, {Session: "../x"}, {Session: "a b"}} {
		if _, err := Resolve(Inputs{Flags: f, Getenv: env(), Dir: t.TempDir(), User: "ada"}); err == nil || err.Code != protocol.UsageError {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func FuzzPerson(f *testing.F) {
	f.Add("Ada Lovelace")
	f.Add("\xff\\é")
	f.Fuzz(func(t *testing.T, user string) {
		if p := Person(user); p != "" && !p.Human() {
			t.Errorf("%q is %q", user, p)
		}
	})
}

// tree makes files, and directories for names that end in "/", in a resolved temporary directory. A name
// may carry content after "=".
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		name, content, _ := strings.Cut(n, "=")
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if parent != path {
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "$", dir)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
