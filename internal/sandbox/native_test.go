package sandbox

import "testing"

// §6.7: the name of a program that is gone is one word of the hint, and no option.
func Test_6_7_native_hints_can_be_typed(t *testing.T) {
	for name, want := range map[string]string{"tool": "hcpx allow tool", "a b": "hcpx allow 'a b'", "--native=x": "hcpx allow -- --native=x"} {
		if err := checkNative(&Spec{Program: Program{Name: name, Path: "/nowhere/tool"}}); err == nil || err.Hint != want {
			t.Errorf("%s: %+v, want %s", name, err, want)
		}
	}
}
