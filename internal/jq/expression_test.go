package jq

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hcpx/internal/jsondoc"
)

func node(t testing.TB, text string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if n == nil || len(faults) > 0 {
		t.Fatalf("%s: %+v", text, faults)
	}
	return n
}

func input(t testing.TB, args string) map[string]any {
	return map[string]any{"args": node(t, args).Any(), "steps": map[string]any{}}
}

func Test_3_5_Expressions(t *testing.T) {
	const args = `{"a":1,"s":"ü","big":9007199254740993,"dec":0.12345678901234567890123,"exp":1e400,"l":[3,1,2]}`
	for src, want := range map[string]string{
		`{text: .args.s, "k": [.args.a]}`:    `{"k":[1],"text":"ü"}`,
		`.args.big`:                          `9007199254740993`,
		`.args.big + 1`:                      `9007199254740994`,
		`.args.big * .args.big`:              `81129638414606699710187514626049`,
		`[.args.dec, .args.exp]`:             `[0.12345678901234567890123,1e400]`,
		`{x: .args} | .x.dec`:                `0.12345678901234567890123`,
		`[.args.l[] | select(. > 1)] | sort`: `[2,3]`,
		`.args.missing`:                      `null`,
		`.steps.later`:                       `null`,
		`"\(.args.s)!"`:                      `"ü!"`,
		`0.1 + 0.2 | . > 0.3`:                `true`,
		`10000000000000000000000001`:         `10000000000000000000000001`,
		`.args | .env`:                       `null`,
		`{now: 1} | .now`:                    `1`,
	} {
		e, err := compile(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		v, err := e.run(t.Context(), input(t, args), limits())
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := string(v.Append(nil)); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
}

func Test_3_5_ExpressionFails(t *testing.T) {
	failing := func(src, want string, within time.Duration) {
		t.Helper()
		e, err := compile(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			return
		}
		b := limits()
		b.time = within
		v, err := e.run(t.Context(), input(t, `{"exp":1e400,"k":1}`), b)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s gives %v, %v; want an error with %q", src, v, err, want)
		}
	}
	for src, want := range map[string]string{
		`empty`:                                "no value",
		`1, 2`:                                 "more than one value",
		`1, error("second")`:                   "second",
		`repeat(1)`:                            "more than one value",
		`error("why")`:                         "why",
		`.args | keys[0] | .x`:                 "expected an object",
		`infinite`:                             "JSON can't write",
		`nan`:                                  "JSON can't write",
		`[.args.exp * 2]`:                      "JSON can't write",
		`"x" * 1048577`:                        "larger than 1 MiB",
		`[range(200000)]`:                      "larger than 1 MiB",
		`reduce range(50) as $i ("x"; [., .])`: "larger than 1 MiB",
		`reduce range(100) as $i ("x"; {a: ., b: .})`: "larger than 1 MiB",
		`reduce range(5000) as $i (1; [.])`:           "nests too deep",
		`error("` + strings.Repeat("y", 900) + `")`:   "yyy…",
	} {
		failing(src, want, time.Minute)
	}
	for _, endless := range []string{`last(repeat(1))`, `def f: f; f`, `last(range(1e12))`} {
		failing(endless, "did not end within", 50*time.Millisecond)
	}
	if b := limits(); b.time != time.Second || b.bytes != 1<<20 {
		t.Errorf("the bounds are %+v", b)
	}
}

// Test_3_5_OneLongCall: a single call inside jq can't be interrupted; the caller leaves all the same.
func Test_3_5_OneLongCall(t *testing.T) {
	e, err := compile(`reduce range(20) as $i ("x"; [., .]) | . == (. | tojson | fromjson)`)
	if err != nil {
		t.Fatal(err)
	}
	b := limits()
	b.time = time.Millisecond
	if _, err := e.run(t.Context(), input(t, `{}`), b); err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Error(err)
	}
}

func Test_3_5_ForbiddenFunctions(t *testing.T) {
	for _, call := range []string{
		"now", "localtime", "strflocaltime(\"%Y\")", "mktime", "halt", "halt_error", "halt_error(1)", "env", "$ENV", "$ENV.PATH", "input", "inputs", "input_filename",
		"input_line_number", "debug", "debug(1)", "stderr", "modulemeta", "get_search_list",
	} {
		if _, err := compile(call); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", call, err)
		}
	}
	// wherever it stands
	for _, around := range []string{
		". | %s", "%s | .", ".[%s]", ".[1:%s]", ".[%s:]", ". as [$a] | %s", ". as {(%s): $a} | $a", ". as {\"\\(%s)\": $a} | $a", "[%s]", "{a: %s}", "{(%s): 1}", "{\"\\(%s)\": 1}", "\"\\(%s)\"",
		"@base64 \"\\(%s)\"", "if %s then 1 else 2 end", "if 1 then %s else 2 end", "if 1 then 1 elif %s then 2 else 3 end", "if 1 then 1 elif 2 then %s end", "if 1 then 1 else %s end", "try %s", "try 1 catch %s",
		"reduce %s as $x (0; 1)", "reduce .[] as $x (%s; 1)", "reduce .[] as $x (0; %s)", "reduce .[] as {(%s): $x} (0; 1)", "foreach %s as $x (0; 1)", "foreach .[] as $x (%s; 1)", "foreach .[] as $x (0; %s)",
		"foreach .[] as $x (0; 1; %s)", "label $l | %s", "def f: %s; f", "def f(g): g; f(%s)", "map(%s)", "-(%s)", "(%s)", "1 + %s", "%s // 1", ".a = %s", ".a |= %s", ".a.\"\\(%s)\"", ".a[%s]?", "%s as $x | 1",
		". as [$a] ?// {(%s): $b} | 1", "[.[] | {b: (1 | %s)}]", "(1 | %s)[0]", "\"a\"[%s:]", "(def f: %s; f)", ".[\"\\(%s)\"]",
	} {
		src := fmt.Sprintf(around, "now")
		if _, err := compile(src); err == nil || !strings.Contains(err.Error(), "now is not allowed") {
			t.Errorf("%s: %v", src, err)
		}
		if _, err := compile(fmt.Sprintf(around, "length")); err != nil && !strings.Contains(err.Error(), "unexpected") {
			t.Errorf("%s with an allowed function: %v", around, err)
		}
	}
	for _, src := range []string{`{$ENV}`, `import "a" as a; 1`, `include "a"; 1`, `module {a: 1}; 1`} {
		if _, err := compile(src); err == nil {
			t.Errorf("%s compiles", src)
		}
	}
}

func Test_3_5_ExpressionErrorsNameTheirPlace(t *testing.T) {
	for src, want := range map[string]string{
		`{a: `:                        "unexpected EOF at character 5",
		`.args.ü`:                     `at character 7`,
		`"ü" | ]`:                     `unexpected token "]" at character 7`,
		`nobody(1)`:                   "function not defined: nobody/1",
		`$x`:                          "variable not defined: $x",
		``:                            "missing query",
		`0.12345678901234567890`:      "would be rounded",
		`[1, 1.00000000000000000001]`: "would be rounded",
		`1e999`:                       "would be rounded",
		strings.Repeat("(", 70000):    "longer than",
	} {
		if _, err := compile(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %q", src, err, want)
		}
	}
	for _, src := range []string{"1.5", ".5", "1.", "1.e3", "1E2", "0.1", "1.0", "100e-2", "-1.5"} {
		if _, err := compile(src); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func Test_3_5_CancelledExpression(t *testing.T) {
	e, err := compile(`last(repeat(1))`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.run(ctx, input(t, `{}`), limits()); err == nil {
		t.Error("a cancelled expression gave a value")
	}
}

// FuzzExpression: whatever the text, compiling and running it ends, within its bounds and without panic.
func FuzzExpression(f *testing.F) {
	for _, src := range []string{`{a: .args.a}`, `[.args.l[] | . as $x | $x + 1] | add`, `reduce .args.l[] as $i (0; . + $i)`, `"\(.steps)" | @base64`, `try error("x") catch .`, `def f(g): g | g; f(. , 1)`, `.args[1:]`, `{(1|tostring): 2, "a": ., $__loc__}`, `label $x | break $x`} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := compile(src)
		if (e == nil) == (err == nil) {
			t.Fatalf("%v and %v", e, err)
		}
		if e == nil || strings.Contains(src, "*") || strings.Contains(src, "tojson") { // one call may take long, and the fuzzer would count the next ones' time
			return
		}
		b := bounds{time: 50 * time.Millisecond, bytes: 1000, depth: 20}
		v, err := e.run(t.Context(), input(t, `{"a":1,"l":[1,2.5,"x",null]}`), b)
		if (v == nil) == (err == nil) {
			t.Fatalf("value %v and error %v", v, err)
		}
		if v != nil && len(v.Append(nil)) > b.bytes {
			t.Errorf("a value of %d bytes", len(v.Append(nil)))
		}
	})
}

func BenchmarkExpression(b *testing.B) {
	in := input(b, `{"a":"x","l":[3,1,2]}`)
	for _, src := range []string{`{from: .args.a, to: .args.b}`, `[.args.l[] | select(. > 1)] | sort`} {
		b.Run("compile "+src, func(b *testing.B) {
			for b.Loop() {
				if _, err := compile(src); err != nil {
					b.Fatal(err)
				}
			}
		})
		e, err := compile(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("run "+src, func(b *testing.B) {
			for b.Loop() {
				if _, err := e.run(b.Context(), in, limits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
