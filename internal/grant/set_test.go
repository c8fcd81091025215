package grant

import (
	"encoding/json"
	"testing"

	"hcpx/internal/jsondoc"
)

// §9.6: a rule is turned away by the name of its argument alone only where no argument may have that name, whatever else has its
// hash: an argument that a caller adds hides no deny.
func Test_9_6_NoArgumentHidesAnother(t *testing.T) {
	k, _ := ruleKeyOf([]rule{{name: "branch", words: []string{"main"}}})
	p := newProbe(who{}, &Request{Args: jsondoc.Obj(jsondoc.Member{Key: "other", Value: jsondoc.Str("x")}, jsondoc.Member{Key: "branch", Value: jsondoc.Str("main")})})
	p.args[0].name = k.arg // as a name with the same hash has
	if k.unfit(&p) {
		t.Error("the first argument of a hash settled it")
	}
	deny := Grant{Principal: "*", Effect: Deny, Capabilities: allow("*").Capabilities, Args: map[string][]json.RawMessage{"branch": {json.RawMessage(`"main"`)}}}
	r := transfer()
	r.Args = jsondoc.Obj(jsondoc.Member{Key: "other", Value: jsondoc.Str("x")}, jsondoc.Member{Key: "branch", Value: jsondoc.Str("main")})
	if d := NewSet([]Grant{allow("*"), deny}).Evaluate(r); d.Err == nil {
		t.Error("the deny does not hold")
	}
}
