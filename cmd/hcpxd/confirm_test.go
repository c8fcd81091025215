package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// asked calls set with n, and gives the question's way back: what the person says, and the answer that the call then has.
func (c *client) asked(n int) func(says string) string {
	c.t.Helper()
	call := fmt.Sprintf(`{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"set","args":{"n":%d}}`, n)
	if c.version < "2026" {
		c.mu.Lock()
		c.got = nil
		c.mu.Unlock()
		id := c.start("tools/call", call+"}")
		q := c.await("a question", func(m message) bool { return m.Method == "elicitation/create" })
		return func(says string) string {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, says))
			return c.envelope(c.answer(id))
		}
	}
	var r struct {
		State string `json:"requestState"`
	}
	if m := c.call("tools/call", call+"}"); json.Unmarshal(m.Result, &r) != nil || r.State == "" {
		c.t.Fatalf("no question: %s", m.Result)
	}
	return func(says string) string {
		return c.envelope(c.call("tools/call", call+fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":%s}}`, r.State, says)))
	}
}

const (
	sayYes    = `{"action":"accept","content":{"confirm":true}}`
	sayFalse  = `{"action":"accept","content":{"confirm":false}}`
	sayNo     = `{"action":"decline"}`
	sayCancel = `{"action":"cancel"}`
)

var approvalID = regexp.MustCompile(`"(?:approval_id|id)":"([0-9A-Z]{20,})"`)

// §15.2: a no is a no, and only an accept with true runs anything, whoever approved the request before or meanwhile.
func Test_15_2_ANoToAnApprovedRequestRunsNothing(t *testing.T) {
	h, n := newHome(t), 100
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := h.dial(version, `{"elicitation":{"form":{}}}`)
		for _, tt := range []struct {
			says        string
			before      bool // approved before the question, else while it stands
			want, state string
		}{
			{sayNo, false, `"reason":"withdrawn"`, "withdrawn"}, {sayFalse, true, `"reason":"withdrawn"`, "withdrawn"},
			{sayCancel, false, `"approval_id"`, "approved"}, {sayCancel, true, `"approval_id"`, "approved"},
			{sayYes, false, `{"ok":true`, "spent"}, {sayYes, true, `{"ok":true`, "spent"},
		} {
			n++
			id := ""
			approve := func() {
				id = approvalID.FindStringSubmatch(h.exec("probe", "set", "--", fmt.Sprintf("n=%d", n)))[1]
				h.run("approvals", "approve", id, "--as", "human:ada")
			}
			if tt.before {
				approve()
			}
			before, say := len(ran(h)), c.asked(n)
			if !tt.before {
				approve()
			}
			got, runs := say(tt.says), 0
			if tt.state == "spent" {
				runs = 1
			}
			if !strings.Contains(got, tt.want) || len(ran(h))-before != runs {
				t.Errorf("%s %+v: %s, %d runs", version, tt, got, len(ran(h))-before)
			}
			if v := h.run("approvals", "show", id); !strings.Contains(v, `"state":"`+tt.state+`"`) {
				t.Errorf("%s %+v: %s", version, tt, v)
			}
		}
	}
}

// §15.2: what another person approved is not this one's to withdraw; his no ends the call all the same.
func Test_15_2_ANoToWhatAnotherApproved(t *testing.T) {
	h := newHome(t)
	h.run("grant", "human:bob", "verb.exec.write", "--pack", "probe", "--as", "human:ada")
	say := h.dial("2025-11-25", forms).asked(1)
	id := approvalID.FindStringSubmatch(h.exec("probe", "set", "--", "n=1"))[1]
	h.run("approvals", "approve", id, "--as", "human:bob")
	if got := say(sayNo); !strings.Contains(got, "said no") || strings.Contains(got, `"reason"`) || len(ran(h)) != 0 {
		t.Errorf("%s, %d runs", got, len(ran(h)))
	}
	if v := h.run("approvals", "show", id); !strings.Contains(v, `"state":"approved"`) {
		t.Error(v)
	}
}

// §15.2: a yes runs what was shown. A pack that is another one by then is not it, though argv and all else are the same.
func Test_15_2_AYesIsToWhatWasShown(t *testing.T) {
	h := newHome(t)
	h.run("grant", "service:ci", "verb.exec.write", "--pack", "probe", "--as", "human:ada")
	for i, version := range []string{"2025-11-25", "2026-07-28"} {
		c := h.dial(version, `{"elicitation":{"form":{}}}`, "--as", "service:ci")
		say := c.asked(i)
		h.write("probe/surface.json", strings.Replace(probe, "1.0.0", fmt.Sprintf("1.0.%d", i+1), 1))
		h.write("probe/probe.sh", probeScript+strings.Repeat("#\n", i+1))
		h.run("install", "probe", "--allow-bin", "--as", "human:ada")
		h.run("activate", "probe", "--as", "human:ada")
		if got := say(sayYes); !strings.Contains(got, "no longer what was shown") || len(ran(h)) != i {
			t.Errorf("%s: %s, %d runs", version, got, len(ran(h)))
		}
		if got := c.asked(i)(sayYes); !strings.HasPrefix(got, `{"ok":true`) {
			t.Errorf("%s: %s", version, got)
		}
	}
}
