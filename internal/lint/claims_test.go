package lint

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

// change is one replacement in one file of the good pack "notes". An empty old removes the file.
type change struct{ file, old, new string }

// codes are the codes that lint gives after the changes, each once.
func codes(t *testing.T, changes ...change) []string {
	t.Helper()
	files := base(t, "notes")
	for _, c := range changes {
		if c.old == "" {
			delete(files, c.file)
			continue
		}
		text := string(files[c.file].Data)
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		files[c.file].Data = []byte(strings.Replace(text, c.old, c.new, 1))
	}
	var out []string
	for _, i := range look([]Source{{FS: files, Name: "notes"}}, Options{}) {
		out = append(out, string(i.Code))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fails says that the changes give exactly these codes, and that lint fails.
func fails(t *testing.T, want string, changes ...change) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Join(codes(t, changes...), " ")); diff != "" {
		t.Errorf("%+v (-want +got)\n%s", changes, diff)
	}
}

func TestHCP_14_2_1_ThreeRequiredFiles(t *testing.T) {
	for _, name := range []string{"surface.json", "policy.json", "HARNESS.md"} {
		fails(t, "pack.missing-file", change{file: name})
	}
}

func TestHCP_14_2_2_ManifestFitsItsSchema(t *testing.T) {
	for _, c := range []change{
		{"surface.json", `  "hcp": { "version": "1.1" },`, ``},
		{"surface.json", `  "version": "1.0.0",`, ``},
		{"surface.json", `"1.0.0"`, `"1.0"`},
		{"surface.json", `"summary": "Keep notes."`, `"summary": 7`},
		{"surface.json", `  "adapter": "wrap",`, `  "adapter": "wrap", "plane": "fleet",`},
		{"surface.json", `"summary": "Add a note",`, ``},
		{"surface.json", `"summary": "Add a note",`, `"summary": "Add a note", "timeout": "2h",`},
		{"surface.json", `"argv": ["add", "--", "{text}"]`, `"argv": "add"`},
	} {
		fails(t, "manifest.schema", c)
	}
}

func TestHCP_14_2_3_EachCommandAndTriggerHasAnEntry(t *testing.T) {
	fails(t, "policy.missing-entry policy.orphan-entry", change{"policy.json", `"note.list": {`, `"note.lists": {`})
	fails(t, "policy.missing-entry policy.orphan-entry", change{"policy.json", `"note.added": {`, `"note.gone": {`})
	fails(t, "policy.missing-entry", change{"policy.json", `"note.added": { "operation": "read", "privacy": { "land": "personal" } }`, ``})
}

func TestHCP_14_2_4_ConfirmOnWritesOnly(t *testing.T) {
	for _, confirm := range []string{"true", "false", `{ "message": "Really?" }`} {
		for _, key := range []string{"note.list", "note.added"} {
			fails(t, "policy.confirm-on-read", change{"policy.json", `"` + key + `": {`, `"` + key + `": { "confirm": ` + confirm + `,`})
		}
	}
}

func TestHCP_14_2_5_SkillIsCleanAndTrue(t *testing.T) {
	token := "gh" + "p_" + "q7Rk2Zp9Wm4Xc8Vb5Nt3Ls6Jd1Hf0GyTaEuI"
	fails(t, "skill.credential", change{"HARNESS.md", "Keep short notes.", "Keep notes with " + token + "."})
	fails(t, "skill.host-path", change{"HARNESS.md", "Keep short notes.", `Keep notes in C:\Users\ada.`})
	fails(t, "skill.undeclared-command", change{"HARNESS.md", "Keep short notes.", "Keep notes by `notes note drop`."})
}

func TestHCP_14_2_6_OneBindingModeAtMost(t *testing.T) {
	for _, binding := range []string{`{ "mode": ["public", "mock"] }`, `{ "modes": ["public", "mock"] }`, `[{ "mode": "public" }, { "mode": "mock" }]`} {
		fails(t, "binding.modes", change{"surface.json", `"adapter": "wrap",`, `"adapter": "wrap", "binding": ` + binding + `,`})
	}
}

// Each violation of §14.2 fails lint.
func TestHCP_14_3_1_EachViolationFailsLint(t *testing.T) {
	for code, file := range map[protocol.IssueCode]string{
		"pack.missing-file": "pack.missing-file", "manifest.schema": "manifest.schema", "policy.missing-entry": "policy.missing-entry",
		"policy.confirm-on-read": "policy.confirm-on-read", "skill.credential": "skill.credential", "skill.host-path": "skill.host-path",
		"skill.undeclared-command": "skill.undeclared-command", "binding.modes": "binding.modes",
	} {
		issues := look([]Source{load(t, "testdata/broken/"+file+".txtar").source}, Options{})
		if !protocol.HasErrors(issues) || issues[0].Code != code {
			t.Errorf("%s: %v", code, shown(issues))
		}
	}
}

// A command that is renamed on one face alone shows on whichever face it was (HCP-12.4-0).
func TestHCP_12_4_1_DriftAmongTheFaces(t *testing.T) {
	fails(t, "faces.drift policy.missing-entry policy.orphan-entry policy.preview skill.undeclared-command skill.untaught-command", change{"surface.json", `"note.list": {`, `"note.all": {`})
	fails(t, "policy.missing-entry policy.orphan-entry", change{"policy.json", `"note.list": {`, `"note.all": {`})
	fails(t, "skill.undeclared-command skill.untaught-command", change{"HARNESS.md", "note.list", "note.all"})
	fails(t, "faces.drift", change{"evals/list.json", "note.list", "note.all"})
}

// Where the manifest does not say which commands there are, that is its one issue.
func Test_14_2_OneFaultHasOneCode(t *testing.T) {
	fails(t, "manifest.schema manifest.unknown-field", change{"surface.json", `"verbs": {`, `"verbs": 7, "other": {`})
	fails(t, "manifest.unknown-field policy.schema", change{"policy.json", `"verbs": {`, `"verbs": 7, "other": {`})
	fails(t, "json.syntax", change{"surface.json", `"verbs": {`, `"verbs": `})
	fails(t, "json.syntax", change{"policy.json", `"verbs": {`, `"verbs": `})
}

func TestHCP_12_1_8_SetupFamily(t *testing.T) {
	fails(t, "setup.partial",
		change{"surface.json", `"note.list": {`, `"setup.apply": { "summary": "Set up", "argv": ["s"], "examples": [{}] }, "note.list": {`},
		change{"policy.json", `"note.list": {`, `"setup.apply": { "operation": "write", "privacy": { "land": "personal" } }, "note.list": {`},
		change{"HARNESS.md", "Keep short notes.", "Keep notes after `setup.apply`."})
}

func TestHCP_14_3_10_AnyMinorVersion(t *testing.T) {
	for _, v := range []string{"1.0", "1.1", "1.2", "1.99"} {
		fails(t, "", change{"surface.json", `"version": "1.1"`, `"version": "` + v + `"`})
	}
	for _, v := range []string{"2.0", "0.9", "1", "1.x", "11.0"} {
		fails(t, "manifest.version", change{"surface.json", `"version": "1.1"`, `"version": "` + v + `"`})
	}
}
