package main

import (
	"strings"
	"testing"
)

// §10.2: the list of a pack and what its operator adds, through the whole program: plan, run, refusal, audit, doctor.
func Test_10_2_NetworkHostsThroughTheProgram(t *testing.T) {
	if lookIn("curl") == "" {
		t.Skip("curl is not installed")
	}
	web, other := webServer(t), webServer(t)
	port := web[strings.LastIndexByte(web, ':'):]
	w := newWorld(t, copyOf(t, "/proc/self/exe"), uids()[0], map[string]string{})
	w.prepare("curl")
	w.enter("curl", []string{"LOCALHOST" + port})
	for _, want := range []string{`"www.example.org:443","localhost` + port + `"`, "https_proxy", `"mode":"hosts"`} {
		if out := w.must("exec", "curl", "get", "--plan", "--json", "--", "url="+web); !strings.Contains(out, want) {
			t.Errorf("plan has no %s: %s", want, out)
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if out := w.must("exec", "curl", "get", "--json", "--", "url=http://"+host+port+"/hello"); !strings.Contains(out, "hello") {
			t.Errorf("%s: %s", host, out)
		}
	}
	for url, want := range map[string]string{
		other + "/hello":                 "connect " + strings.TrimPrefix(other, "http://") + ": loopback address",
		"http://evil.example.test/":      "connect evil.example.test:80: not listed",
		"http://169.254.169.254/latest/": "connect 169.254.169.254:80: metadata address",
	} {
		out, err := w.run("exec", "curl", "get", "--json", "--", "url="+url)
		if err == nil || !strings.Contains(out, `"denied":["`+want+`"]`) {
			t.Errorf("%s: %v %s", url, err, out)
		}
	}
	if out := w.must("audit", "tail", "--json"); !strings.Contains(out, `"network":"hosts"`) {
		t.Errorf("the audit names no network: %s", out)
	}
	if out, _ := w.run("doctor", "--json"); !strings.Contains(out, `network-hosts`) {
		t.Errorf("doctor has no row: %s", out)
	}
	if out, err := w.run("allow", "--host", "curl", "*.example.org:443"); err == nil {
		t.Errorf("a wildcard is allowed: %s", out)
	}
}
