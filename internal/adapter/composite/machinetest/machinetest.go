// Package machinetest is what every machine of expressions must do (§3.5), in this process or in another.
package machinetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Input is a value of args with what an expression could lose: long numbers, text of any kind, depth.
const Input = `{"args":{"a":1,"s":"ü\u0000\u2028\"","big":9007199254740993,"dec":0.12345678901234567890123,"exp":1e400,"l":[3,1,2],"deep":[[[[[[{"x":[]}]]]]]]},"steps":{"b":null,"a-b":{"z":1,"y":2}}}`

// Run holds a machine to the contract.
func Run(t *testing.T, m composite.Machine) {
	if err := m.Ready(); err != nil {
		t.Fatal(err)
	}
	m.Warm()
	t.Run("values", func(t *testing.T) { values(t, m) })
	t.Run("faults", func(t *testing.T) { faults(t, m) })
	t.Run("bounds", func(t *testing.T) { bounds(t, m) })
	t.Run("cancel", func(t *testing.T) { cancel(t, m) })
	t.Run("check", func(t *testing.T) { check(t, m) })
	t.Run("several at once", func(t *testing.T) { several(t, m) })
	values(t, m) // whatever went wrong before
}

func input(t *testing.T) *jsondoc.Node {
	t.Helper()
	n, bad := jsondoc.Parse([]byte(Input), jsondoc.Limits{})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return n
}

func values(t *testing.T, m composite.Machine) {
	for src, want := range map[string]string{
		`.args.s`:                          "\"ü\\u0000\u2028\\\"\"",
		`.args.big + 1`:                    `9007199254740994`,
		`[.args.dec, .args.exp]`:           `[0.12345678901234567890123,1e400]`,
		`{x: .args} | .x.dec`:              `0.12345678901234567890123`,
		`[.args.l[] | select(. > 1)]`:      `[3,2]`,
		`.args.deep`:                       `[[[[[[{"x":[]}]]]]]]`,
		`.steps["a-b"]`:                    `{"y":2,"z":1}`,
		`.args.missing`:                    `null`,
		`false`:                            `false`,
		`[range(3)] | map(. * 2) | add`:    `6`,
		`"` + strings.Repeat("x", 9) + `"`: `"xxxxxxxxx"`,
	} {
		v, err := m.Eval(t.Context(), src, input(t))
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if got := string(v.Append(nil)); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
}

// clauses: the error of an expression is half a sentence, and none of the machine's own.
func clause(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 || errors.As(err, new(*protocol.Error)) {
		t.Errorf("%.60s: %v; want a clause with %q", what, err, want)
	}
}

func faults(t *testing.T, m composite.Machine) {
	for src, want := range map[string]string{
		`empty`:              "no value",
		`1, 2`:               "more than one value",
		`error("why")`:       "why",
		`.args.a.b`:          "expected an object",
		`infinite`:           "JSON can't write",
		`"x" * 1048577`:      "larger than 1 MiB",
		`{a: `:               "unexpected EOF",
		`now`:                "now is not allowed",
		`$ENV.HOME`:          "$ENV is not allowed",
		`input`:              "input is not allowed",
		`import "a" as a; 1`: "not allowed",
		strings.Repeat("(", composite.MaxLength+1):   "longer than",
		`reduce range(1000) as $i (1; [.])`:          "nests too deep",
		`error("` + strings.Repeat("é", 9000) + `")`: "ééé",
	} {
		v, err := m.Eval(t.Context(), src, input(t))
		if v != nil {
			t.Errorf("%.60s gives %s", src, v.Append(nil))
		}
		clause(t, src, err, want)
	}
}

func bounds(t *testing.T, m composite.Machine) {
	if _, err := m.Eval(t.Context(), `last(repeat(1))`, input(t)); err == nil || err.Error() != composite.ErrTime.Error() {
		t.Errorf("an endless expression: %v", err)
	}
	v, err := m.Eval(t.Context(), `"x" * 1048574`, input(t))
	if err != nil || len(v.Text) != 1048574 {
		t.Errorf("a value of 1 MiB: %v", err)
	}
}

func cancel(t *testing.T, m composite.Machine) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := m.Eval(ctx, `last(repeat(1))`, input(t)); err == nil {
		t.Error("a cancelled expression gave a value")
	}
}

func check(t *testing.T, m composite.Machine) {
	exprs := []string{`.args`, `nobody(1)`, `{$ENV}`, `.steps | keys`, `1.00000000000000000001`, strings.Repeat("[", composite.MaxLength+1)}
	wants := []string{"", "function not defined: nobody/1", "not allowed", "", "would be rounded", "longer than"}
	got, refusal := m.Check(t.Context(), exprs)
	if refusal != nil || len(got) != len(exprs) {
		t.Fatal(got, refusal)
	}
	for i, want := range wants {
		if want != "" {
			clause(t, exprs[i], got[i], want)
		} else if got[i] != nil {
			t.Errorf("%s: %v", exprs[i], got[i])
		}
	}
	if got, refusal := m.Check(t.Context(), nil); refusal != nil || len(got) > 0 {
		t.Error(got, refusal)
	}
}

// several: each gets its own answer, whatever others ask meanwhile.
func several(t *testing.T, m composite.Machine) {
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			n := jsondoc.Obj(jsondoc.Member{Key: "args", Value: jsondoc.Str(strings.Repeat("x", i*1000))})
			for range 5 {
				if v, err := m.Eval(t.Context(), `.args`, n); err != nil || len(v.Text) != i*1000 {
					t.Errorf("%d: %v", i, err)
				}
				if _, err := m.Eval(t.Context(), `error("no")`, n); err == nil {
					t.Error("no error")
				}
			}
		})
	}
	all.Wait()
}
