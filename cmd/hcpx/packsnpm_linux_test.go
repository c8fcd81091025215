package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hcpx/internal/protocol"
)

// registry is a small npm registry: left-pad 1.0.0 to 1.2.0, of which the first is vulnerable, and @corp/tool.
func registry(t *testing.T, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	packument := func(name string, versions ...string) map[string]any {
		all := map[string]any{}
		for _, v := range versions {
			all[v] = map[string]any{"name": name, "version": v, "license": "MIT", "dist": map[string]any{"tarball": s.URL + "/" + name + "/-/x-" + v + ".tgz", "shasum": strings.Repeat("0", 40)}}
		}
		return map[string]any{"name": name, "dist-tags": map[string]any{"latest": versions[len(versions)-1]}, "versions": all}
	}
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var answer any
		switch path := r.URL.EscapedPath(); {
		case path == "/left-pad":
			answer = packument("left-pad", "1.0.0", "1.1.0", "1.2.0")
		case strings.EqualFold(path, "/@corp%2ftool"):
			answer = packument("@corp/tool", "3.0.0", "4.0.0")
		case path == "/-/npm/v1/security/advisories/bulk":
			answer = map[string]any{"left-pad": []any{map[string]any{"id": 1, "url": "https://example.org/advisory/1", "title": "It pads too far", "severity": "high", "vulnerable_versions": "<1.1.0"}}}
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"error": "not found"}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// §14.2, §10.2: the npm pack keeps its evals on a real registry, and whatever the project holds (.npmrc, scripts, modules,
// addresses of dependencies) sends it to no other registry and runs nothing.
func Test_14_2_ThePackNpm(t *testing.T) {
	var asked, evil atomic.Int64
	good, other := registry(t, &asked), registry(t, &evil)
	host := strings.TrimPrefix(good.URL, "http://")
	run := `touch ran`
	w := newPackWorld(t, "npm", map[string]string{
		"package.json": `{"name":"app","version":"1.0.0","scripts":{"preversion":"` + run + `","version":"` + run + `","postversion":"` + run + `"},
  "dependencies":{"left-pad":"^1.0.0","@corp/tool":"^3.0.0"}}`,
		"package-lock.json": `{"name":"app","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"app","version":"1.0.0","dependencies":{"left-pad":"^1.0.0","@corp/tool":"^3.0.0"}},
  "node_modules/left-pad":{"version":"1.0.0","resolved":"` + other.URL + `/left-pad/-/x.tgz"},"node_modules/@corp/tool":{"version":"3.0.0","resolved":"` + other.URL + `/x.tgz","hasInstallScript":true}}}`,
		"node_modules/left-pad/package.json": `{"name":"left-pad","version":"1.0.0","scripts":{"install":"` + run + `"}}`,
		"evil.js":                            `require("fs").writeFileSync("ran", "x")`,
		".npmrc": "registry=" + other.URL + "\n@corp:registry=" + other.URL + "\nscript-shell=./evil.js\nnode-options=--require ./evil.js\ngit=./evil.js\nprefix=/tmp\nignore-scripts=false\n" +
			"git-tag-version=true\nproxy=" + other.URL + "\nhttps-proxy=" + other.URL + "\nglobal=true\nuserconfig=./evil\noffline=true\nomit=dev\nbefore=2001-01-01\n//" + host + "/:_authToken=${HOME}\n",
	}, "/usr/bin/npm", "/usr/bin/node")
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".npmrc": "registry=" + other.URL + "\n"})
	w.env = []string{"npm_config_registry=" + other.URL, "NPM_CONFIG_SCRIPT_SHELL=./evil.js", "NODE_OPTIONS=--require ./evil.js"}
	w.must("allow", "--host", "npm", host)
	w.vars = strings.NewReplacer("127.0.0.1:4873", host)
	w.evalsOf(shippedPacks, "npm")
	if testing.Short() {
		return
	}
	at := `{"registry":` + quoted(good.URL) + `}`
	w.gives("npm", "outdated", at, `{"packages":[{"name":"@corp/tool","current":null,"wanted":"3.0.0","latest":"4.0.0"},{"name":"left-pad","current":"1.0.0","wanted":"1.2.0","latest":"1.2.0"}],"unknown":[]}`)
	r, out := w.call("npm", "audit", json.RawMessage(at), false)
	if !r.OK || !matches(t, `.counts.high == 1 and (.vulnerable | length) == 1 and .vulnerable[0].name == "left-pad" and .vulnerable[0].advisories[0].title == "It pads too far"`, r.Result) {
		t.Errorf("audit: %s", out)
	}
	w.gives("npm", "outdated", fmt.Sprintf(`{"registry":%q,"scopes":{"@corp":%q}}`, good.URL, other.URL),
		`{"packages":[{"name":"left-pad","current":"1.0.0","wanted":"1.2.0","latest":"1.2.0"}],"unknown":["@corp/tool"]}`)
	if r, out := w.call("npm", "ls", map[string]any{}, false); !r.OK || !matches(t, `.dependencies["left-pad"].version == "1.0.0"`, r.Result) {
		t.Errorf("ls: %s", out)
	}
	for _, args := range []string{`{"to":"--no-ignore-scripts"}`, `{"to":"from-git"}`, `{"to":"1.2.3;id"}`, `{"to":"patch","preid":"-x"}`} {
		w.refuses(protocol.InvalidArgs, "", "npm", "version", args)
	}
	before := w.work("package.json")
	w.gives("npm", "next", `{"to":"minor"}`, `{"from":"1.0.0","to":"1.1.0","files":["package.json","package-lock.json"]}`)
	if w.work("package.json") != before {
		t.Error("a look changed the version")
	}
	w.gives("npm", "version", `{"to":"minor"}`, `{"from":"1.0.0","to":"1.1.0","files":["package.json","package-lock.json"]}`)
	if !strings.Contains(w.work("package.json"), `"version":"1.1.0"`) || strings.Count(w.work("package-lock.json"), "1.1.0") != 2 {
		t.Errorf("the version is not written: %s", w.work("package.json"))
	}
	if n := evil.Load(); n != 0 || asked.Load() == 0 || w.work("ran") != "" {
		t.Errorf("the other registry was asked %d times, the named one %d, or a script ran", n, asked.Load())
	}
}
