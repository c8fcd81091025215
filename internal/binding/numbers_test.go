package binding

import (
	"strings"
	"testing"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// §8.4: what a server says of times is taken by its value, and refused in words that are about it.
func Test_8_4_TimesByTheirValue(t *testing.T) {
	for text, want := range map[string]time.Duration{"3600": time.Hour, "3600.7": time.Hour, `"3600"`: time.Hour, "1e30": longestToken, "1e999": longestToken,
		"3.6e3": time.Hour, "null": 0, "0": -1, "-5": -1, "0.5": -1, `"inf"`: -1, `"0x10"`: -1, `""`: -1, "true": -1, "[]": -1} {
		n, _ := jsondoc.Parse([]byte(text), jsondoc.Limits{})
		got, err := lifetime(n, "The server")
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, interval := range []string{"0", "-1", `"x"`} {
		n, _ := jsondoc.Parse([]byte(`{"device_code":"d","user_code":"u","verification_uri":"https://a.example.org/","expires_in":600,"interval":`+interval+`}`), jsondoc.Limits{})
		if _, err := waitOf(n, &manifest.Source{AuthURL: "https://a.example.org/d"}); err == nil || !strings.Contains(err.Message, "interval") {
			t.Errorf("interval %s: %v", interval, err)
		}
	}
	if _, err := (&hub{}).understand(answer{status: 201, body: []byte(`{"access_token":"x"}`)}, "https://a.example.org/t"); err == nil || !strings.Contains(err.Message, "status 201") {
		t.Errorf("%v", err)
	}
	if _, err := fit([]byte("12345678\u009b31m"), "The token"); err == nil {
		t.Error("a control character of the second table is taken")
	}
}
