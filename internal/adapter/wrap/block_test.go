package wrap

import (
	"testing"
	"testing/fstest"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

func Test_10_2_Block(t *testing.T) {
	files := fstest.MapFS{
		"bin/tool":    {Data: []byte("\x7fELF"), Mode: 0o755},
		"bin/plain":   {Data: []byte("x"), Mode: 0o644},
		"bin/script":  {Data: []byte("#!/bin/sh -e\necho\n"), Mode: 0o755},
		"lib/env":     {Data: []byte("#! /usr/bin/env -S python3 -u\n"), Mode: 0o755},
		"lib/data.sh": {Data: []byte("#!/bin/dash\n"), Mode: 0o755},
	}
	sh := `"sh"`
	for name, test := range map[string]struct {
		block   string
		code    string // "" = clean
		pointer string
	}{
		"a bare name":                     {`{"bin":"git","uses":[` + sh + `]}`, "", ""},
		"a shipped program":               {`{"bin":"./bin/tool","uses":[` + sh + `]}`, "", ""},
		"absent":                          {`{"bin":"./bin/none","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"not executable":                  {`{"bin":"./bin/plain","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"a directory":                     {`{"bin":"./bin","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"outside":                         {`{"bin":"./../git","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"absolute":                        {`{"bin":"/usr/bin/git","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"a path without ./":               {`{"bin":"bin/tool","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"a parent":                        {`{"bin":"..","uses":[` + sh + `]}`, "wrap.bin", "/wrap/bin"},
		"uses: names, paths, directories": {`{"bin":"git","uses":["sh","/usr/bin/less","/usr/lib/git-core/","./bin/tool"]}`, "", ""},
		"uses: relative":                  {`{"bin":"git","uses":["sh","lib/x"]}`, "wrap.uses", "/wrap/uses/1"},
		"uses: odd":                       {`{"bin":"git","uses":["sh","/usr/../x"]}`, "wrap.uses", "/wrap/uses/1"},
		"uses: absent":                    {`{"bin":"git","uses":["sh","./bin/none"]}`, "wrap.uses", "/wrap/uses/1"},
		"a script needs its interpreter":  {`{"bin":"./bin/script"}`, "wrap.uses", "/wrap/bin"},
		"a script below bin/ too":         {`{"bin":"git","uses":["less"]}`, "wrap.uses", "/wrap/uses"},
		"an interpreter by path":          {`{"bin":"./bin/script","uses":["/bin/sh"]}`, "", ""},
		"an interpreter by directory":     {`{"bin":"./bin/script","uses":["/bin/"]}`, "", ""},
		"env needs both":                  {`{"bin":"./lib/env","uses":["sh","env"]}`, "wrap.uses", "/wrap/uses"},
		"env needs itself":                {`{"bin":"./lib/env","uses":["sh","python3"]}`, "wrap.uses", "/wrap/uses"},
		"env and X":                       {`{"bin":"./lib/env","uses":["sh","env","python3"]}`, "", ""},
		"env and X by path":               {`{"bin":"./lib/env","uses":["sh","env","/usr/bin/python3"]}`, "", ""},
		"a named script":                  {`{"bin":"git","uses":["sh","./lib/data.sh"]}`, "wrap.uses", "/wrap/uses"},
		"reads: a file":                   {`{"bin":"git","uses":["sh"],"reads":["~/.gitconfig","/usr/share/x/"]}`, "", ""},
		"reads: a store":                  {`{"bin":"git","uses":["sh"],"reads":["~/.gitconfig","~/.ssh"]}`, "wrap.reads", "/wrap/reads/1"},
		"env: a name that changes code":   {`{"bin":"git","uses":["sh"],"env":{"A":"1","LD_PRELOAD":"x.so"}}`, "wrap.env-name", "/wrap/env/LD_PRELOAD"},
		"env: a secret":                   {`{"bin":"git","uses":["sh"],"env":{"A":"1","API_TOKEN":"s3cr3t-value"}}`, "wrap.env-secret", "/wrap/env/API_TOKEN"},
		"pass-through":                    {`{"bin":"git","uses":["sh"],"allowedSubcommands":["log"],"maxArgv":3}`, "wrap.pass-through", "/wrap/allowedSubcommands"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := manifest.Decode(surface(test.block, `"argv":[]`))
			issues := New().CheckBlock(m, files)
			if test.code == "" {
				if len(issues) > 0 {
					t.Errorf("%+v", issues)
				}
				return
			}
			if len(issues) != 1 || issues[0].Code != protocol.IssueCode(test.code) || issues[0].Pointer != test.pointer {
				t.Fatalf("%+v; want one %s at %s", issues, test.code, test.pointer)
			}
			placed(t, m, issues[0])
		})
	}
}

func Test_3_3_EnvSecrets(t *testing.T) {
	for _, clean := range [][2]string{
		{"REGION", "eu-central-1"}, {"API_TOKEN", "<TOKEN>"}, {"API_KEY", "YOUR_API_KEY"}, {"API_KEY", "xxxx"}, {"API_TOKEN", ""}, {"TOKEN_URL", "https://example.org/token"},
		{"MAX_TOKEN", "4096"}, {"SSL_KEY_TOKEN", "/etc/ssl/x.pem"}, {"LANG", "de_CH.UTF-8"}, {"MODE", "ReadOnlyWithVeryLongNameOfMode"}, {"FORMAT", "%Y-%m-%dT%H:%M:%SZ and more text"},
		{"URL", "https://user@example.org/"}, {"GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"},
	} {
		if why := secret(clean[0], clean[1]); why != "" {
			t.Errorf("%v: %s", clean, why)
		}
	}
	for _, leak := range [][2]string{
		{"X", "ghp_" + "0123456789abcdefABCDEF0123456789abcd"}, {"X", "AKIA" + "IOSFODNN7EXAMPLE"}, {"X", "postgres://ada:pass1@db/x"}, {"DB_PASSWORD", "swordfish"}, {"TOKEN", "abc12345x"},
		{"X", "-----BEGIN " + "PRIVATE KEY-----"}, {"X", "q8Zr2LmX0vTn5KbYw3HsDf7GjP1c"}, {"X", "0123456789abcdef0123456789abcdef01234567"}, {"X", "eyJhbGciOi.eyJzdWIi.c2ln"},
	} {
		if secret(leak[0], leak[1]) == "" {
			t.Errorf("%v is not found", leak)
		}
	}
}

// FuzzBlock: whatever the block says, the check ends, and every issue has a place.
func FuzzBlock(f *testing.F) {
	f.Add(`{"bin":"./bin/x","uses":["/","./","a/"],"reads":["~"],"env":{"TOKEN":"abc"}}`, []byte("#!/usr/bin/env -S A=b x"))
	f.Add(`{"bin":"./a","uses":["./bin/x"]}`, []byte("#!"))
	f.Fuzz(func(t *testing.T, block string, script []byte) {
		m, _ := manifest.Decode(surface(block, `"argv":[]`))
		if m == nil {
			return
		}
		for _, i := range New().CheckBlock(m, fstest.MapFS{"bin/x": {Data: script, Mode: 0o755}}) {
			if i.Line < 1 || i.Column < 1 || i.Pointer == "" {
				t.Errorf("an issue without place: %+v", i)
			}
		}
	})
}
