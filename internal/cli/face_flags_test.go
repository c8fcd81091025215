package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
)

const flagSchema = `{
  "type": "object", "additionalProperties": false, "required": ["stop"],
  "properties": {
    "stop": {"type": "string"}, "limit": {"type": "integer"}, "ratio": {"type": "number"}, "loud": {"type": "boolean"},
    "maybe": {"type": ["boolean", "null"]}, "both": {"type": ["boolean", "string"]}, "level": {"type": "string", "enum": ["low", "high"]},
    "tags": {"type": "array", "items": {"type": "string"}}, "sizes": {"type": "array", "items": {"type": "number"}},
    "flags": {"type": "array", "items": {"type": "boolean"}}, "rows": {"type": "array", "items": {"type": "object"}},
    "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    "opts": {"type": "object", "properties": {"depth": {"type": "integer"}, "maxAge": {"type": "integer"}, "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}}}},
    "fromStop": {"type": "string"}, "HTTPServer": {"type": "string"}, "a.b": {"type": "integer"}, "x_y": {"type": "string"},
    "json": {"type": "string"}, "home": {"type": "string"}, "confirm": {"type": "boolean"}, "stream": {"type": "boolean"}, "any": {},
    "ref": {"$ref": "#/$defs/size"}, "pick": {"anyOf": [{"type": "integer"}, {"type": "string"}]}
  },
  "$defs": {"size": {"type": "integer"}}
}`

// §12.1: what each form of a flag means. Each row is a trap of some command line that exists.
func Test_12_1_FlagsAreTypedByTheSchema(t *testing.T) {
	schema := schemaNode(t, flagSchema)
	for _, tt := range []struct {
		about, line string // words are separated by blanks, ~ is an empty word, _ a blank
		want        string
	}{
		{"no flag is no argument", "", `{}`},
		{"a value behind the flag", "--stop Central", `{"stop":"Central"}`},
		{"a value behind =", "--stop=Central", `{"stop":"Central"}`},
		{"a value with =", "--stop=a=b", `{"stop":"a=b"}`},
		{"a value with := behind a blank", "--stop a:=b", `{"stop":"a:=b"}`},
		{"an empty value", "--stop ~", `{"stop":""}`},
		{"an empty value behind =", "--stop=", `{"stop":""}`},
		{"a blank stays", "--stop _a_", `{"stop":" a "}`},
		{"a text that looks like a number stays text", "--stop 007", `{"stop":"007"}`},
		{"a text that looks like a boolean stays text", "--stop false", `{"stop":"false"}`},
		{"a text that looks like null stays text", "--stop null", `{"stop":"null"}`},
		{"a text that looks like JSON stays text", `--stop {"a":1}`, `{"stop":"{\"a\":1}"}`},
		{"a text that looks like a list stays text", `--stop [1]`, `{"stop":"[1]"}`},
		{"one dash begins a value", "--stop -x", `{"stop":"-x"}`},
		{"one dash alone is a value", "--stop -", `{"stop":"-"}`},
		{"two dashes stand behind =", "--stop=--plan", `{"stop":"--plan"}`},
		{"-- too", "--stop=--", `{"stop":"--"}`},
		{"-h behind a flag is its value", "--stop -h", `{"stop":"-h"}`},
		{"a negative number", "--limit -5", `{"limit":-5}`},
		{"a negative number behind =", "--limit=-5", `{"limit":-5}`},
		{"a large integer", "--limit 9007199254740993", `{"limit":9007199254740993}`},
		{"what is no integer stays a text for step 5", "--limit 1.5", `{"limit":"1.5"}`},
		{"a number in quotes is no number", `--limit "5"`, `{"limit":"\"5\""}`},
		{"an empty number is none", "--limit=", `{"limit":""}`},
		{"a decimal keeps its text", "--ratio 0.10", `{"ratio":0.10}`},
		{"a switch", "--loud", `{"loud":true}`},
		{"a switch that is off", "--no-loud", `{"loud":false}`},
		{"false behind a switch is its value", "--loud false", `{"loud":false}`},
		{"true behind a switch is its value", "--loud true --stop x", `{"loud":true,"stop":"x"}`},
		{"false behind =", "--loud=false", `{"loud":false}`},
		{"yes is no boolean", "--loud=yes", `{"loud":"yes"}`},
		{"a switch, then a flag", "--loud --stop x", `{"loud":true,"stop":"x"}`},
		{"a switch that may be null", "--maybe=null", `{"maybe":null}`},
		{"such a switch alone", "--maybe", `{"maybe":true}`},
		{"a boolean or a text takes a value", "--both false", `{"both":false}`},
		{"a boolean or a text takes a text", "--both x", `{"both":"x"}`},
		{"an enum is a text for step 5", "--level middle", `{"level":"middle"}`},
		{"one item is a list of one", "--tags a", `{"tags":["a"]}`},
		{"a list by repeating", "--tags b --tags a --tags=b", `{"tags":["b","a","b"]}`},
		{"a comma divides nothing", "--tags a,b", `{"tags":["a,b"]}`},
		{"items are typed", "--sizes 1.5 --sizes -2", `{"sizes":[1.5,-2]}`},
		{"a comma divides no numbers", "--sizes 1.5,2.5", `{"sizes":["1.5,2.5"]}`},
		{"a JSON list where no item is one", "--sizes [1,2.50]", `{"sizes":[1,2.50]}`},
		{"a list of booleans takes values", "--flags true --flags false", `{"flags":[true,false]}`},
		{"a list of objects", `--rows {"a":1} --rows {}`, `{"rows":[{"a":1},{}]}`},
		{"a list of objects as JSON", `--rows [{"a":1}]`, `{"rows":[{"a":1}]}`},
		{"a list of lists, item by item", `--grid [1,2] --grid [3]`, `{"grid":[[1,2],[3]]}`},
		{"what is no JSON is an item", "--tags [id].txt", `{"tags":["[id].txt"]}`},
		{"a list as a whole behind :=", `--tags:=["a","[1]"]`, `{"tags":["a","[1]"]}`},
		{"an empty list", "--tags:=[]", `{"tags":[]}`},
		{":= takes any JSON", `--limit:="5"`, `{"limit":"5"}`},
		{"an object as JSON", `--opts {"depth":1.0,"x":[]}`, `{"opts":{"depth":1.0,"x":[]}}`},
		{"an object with blanks", `--opts=_{"depth":_1}`, `{"opts":{"depth":1}}`},
		{"members by a dot", "--opts.depth 3 --opts.deep.on", `{"opts":{"depth":3,"deep":{"on":true}}}`},
		{"members in kebab-case", "--opts.max-age 3", `{"opts":{"maxAge":3}}`},
		{"members by their own name", "--opts.maxAge 3", `{"opts":{"maxAge":3}}`},
		{"a member that is not declared", "--opts.other.thing 3", `{"opts":{"other":{"thing":"3"}}}`},
		{"a member that is off", "--opts.deep.on=false", `{"opts":{"deep":{"on":false}}}`},
		{"a member as JSON", `--opts.deep:={"on":null}`, `{"opts":{"deep":{"on":null}}}`},
		{"kebab-case", "--from-stop A --http-server b --x-y c", `{"fromStop":"A","HTTPServer":"b","x_y":"c"}`},
		{"a name with a dot", "--a-b 1", `{"a.b":1}`},
		{"a name that hcpx has", "--arg-json x --arg-home y --arg-confirm --no-arg-stream", `{"json":"x","home":"y","confirm":true,"stream":false}`},
		{"no type is a text", "--any 7", `{"any":"7"}`},
		{"no type may repeat, as k=v", "--any 7 --any 8", `{"any":["7","8"]}`},
		{"a $ref is followed", "--ref 7", `{"ref":7}`},
		{"anyOf in its order", "--pick 7", `{"pick":7}`},
		{"words behind --", "--stop x -- limit=5 tags=--a tags=-- opts.depth=1", `{"stop":"x","limit":5,"tags":["--a","--"],"opts":{"depth":1}}`},
		{"hcpx's own flags are no arguments", "--json --as human:ada --confirm --plan false --quiet --stop x", `{"stop":"x"}`},
	} {
		t.Run("§12.1 "+tt.about, func(t *testing.T) {
			got, bad := argsOfFlags(lineWords(tt.line), schema)
			if len(bad) > 0 {
				t.Fatalf("refused: %v", bad)
			}
			if diff := cmp.Diff(tt.want, string(got.Append(nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func lineWords(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.NewReplacer("~", "", "_", " ").Replace(w)
	}
	return words
}

// §12.1: what cannot be said is refused with its place and what was meant, and nothing is dropped or guessed.
func Test_12_1_WhatIsNoFlagIsAViolation(t *testing.T) {
	schema := schemaNode(t, flagSchema)
	for _, tt := range []struct{ about, line, pointer, said string }{
		{"an unknown flag", "--lmit 5", "", "There is no flag --lmit; the nearest is --limit."},
		{"an unknown flag, nothing near", "--frobnicate 5", "", "There is no flag --frobnicate."},
		{"an unknown flag behind =", "--lmit=5", "", "--limit"},
		{"the property's own name", "--fromStop A", "", "it is --from-stop"},
		{"an own flag, misspelt", "--confrm", "", "the nearest is --confirm"},
		{"a name that hcpx has is its own", "--arg-plan", "", "There is no flag --arg-plan"},
		{"no value at the end", "--stop", "/stop", "--stop needs a value; one that begins with -- is given as --stop=--…."},
		{"a flag is no value", "--stop --loud", "/stop", "--stop needs a value"},
		{"hcpx's flag is no value", "--stop --confirm", "/stop", "--stop needs a value"},
		{"an unknown flag is no value", "--stop --", "/stop", "--stop needs a value"},
		{"-- is no value", "--stop -- limit=5", "/stop", "--stop needs a value"},
		{"a word alone", "Central", "", `"Central" stands alone`},
		{"a word behind a switch", "--loud yes", "", `"yes" stands alone`},
		{"a word behind --no-x", "--no-loud true", "", `"true" stands alone`},
		{"a value for --no-x", "--no-loud=false", "/loud", "--no-loud takes no value"},
		{"no --no-x for what is no switch", "--no-limit", "", "There is no flag --no-limit"},
		{"no --no-x for a boolean or a text", "--no-both", "", "There is no flag --no-both"},
		{"a short flag", "-l", "", `"-l" is no flag`},
		{"a negative number alone", "-5", "", `"-5" is no flag`},
		{"a scalar twice", "--limit 1 --limit 2", "/limit", "--limit is given twice, and takes one value."},
		{"a scalar twice, alike", "--limit 1 --limit=1", "/limit", "twice"},
		{"a switch both ways", "--loud --no-loud", "/loud", "twice"},
		{"a member twice", "--opts.depth 1 --opts.depth 2", "/opts/depth", "twice"},
		{"an object, then its member", `--opts {} --opts.depth 1`, "/opts/depth", "both as a value and with members"},
		{"a member, then the object", `--opts.depth 1 --opts {}`, "/opts", "both as a value and with members"},
		{"an object that is none", "--opts depth=1", "/opts", "it takes an object as JSON, or its members one by one"},
		{"an object that is broken", `--opts {"a":`, "/opts", "not one JSON value"},
		{"an object with a member twice", `--opts {"a":1,"a":2}`, "/opts", "not one JSON value"},
		{"an item that is no object", "--rows x", "/rows", "it takes an object as JSON"},
		{"a list that may be an item", `--tags ["a","b"]`, "/tags", "give the flag once for each item, or the list behind :="},
		{"a broken list", "--sizes [1,", "/sizes", "not one JSON value"},
		{"broken JSON behind :=", "--tags:=[", "/tags", "not one JSON value"},
		{":= without a value", "--tags:", "", "There is no flag --tags:"},
		{":= with --no-x", "--no-loud:=1", "/loud", "--no-loud takes no value"},
		{"no name", "--=x", "", "There is no flag --"},
		{"a dot and nothing", "--opts. 1", "", "There is no flag --opts."},
		{"not UTF-8", "--stop \xff", "/stop", "not valid UTF-8"},
		{"not UTF-8 behind =", "--stop=\xff", "", "not valid UTF-8"},
		{"a word behind -- that is none", "-- Central", "", `"Central" is not of the form name=value`},
		{"a flag behind -- is none", "-- --stop=x", "", ""}, // the argument --stop, which the schema refuses
		{"an own value that is none", "--plan=perhaps", "", "--plan takes true or false"},
		{"an own flag without its value", "--approval", "", "--approval needs a value"},
		{"an own flag before another", "--approval --plan", "", "--approval needs a value"},
	} {
		t.Run("§12.1 "+tt.about, func(t *testing.T) {
			got, bad := argsOfFlags(lineWords(tt.line), schema)
			if tt.said == "" {
				if len(bad) > 0 || string(got.Append(nil)) != `{"--stop":"x"}` {
					t.Errorf("%s %v", got.Append(nil), bad)
				}
				return
			}
			if len(bad) != 1 || bad[0].Pointer != tt.pointer || !strings.Contains(bad[0].Message, tt.said) || !strings.HasSuffix(bad[0].Message, ".") {
				t.Errorf("violations %+v, want one at %q that says %q", bad, tt.pointer, tt.said)
			}
		})
	}
}

// §12.1: where two properties of a combination come to one flag, neither has it: both are named behind --.
func Test_12_1_AFlagIsNeverTwoArguments(t *testing.T) {
	schema := schemaNode(t, `{"type":"object","properties":{"fromStop":{"type":"string"}},"allOf":[{"properties":{"from_stop":{"type":"string"},"to":{"type":"string"}}}]}`)
	if _, bad := argsOfFlags([]string{"--from-stop", "x"}, schema); len(bad) != 1 {
		t.Errorf("%v", bad)
	}
	got, bad := argsOfFlags([]string{"--to", "y", "--", "from_stop=x"}, schema)
	if len(bad) > 0 || string(got.Append(nil)) != `{"to":"y","from_stop":"x"}` {
		t.Errorf("%s %v", got.Append(nil), bad)
	}
}

// A word that may be the secret of a command is not shown, and the flag that it belonged to takes it away unseen.
func Test_12_1_AStrayWordMayBeASecret(t *testing.T) {
	for _, mark := range []string{`"format":"password"`, `"writeOnly":true`} {
		schema := schemaNode(t, `{"type":"object","properties":{"token":{"type":"string",`+mark+`},"opts":{"type":"object"}}}`)
		for _, line := range []string{"hunter2", "-hunter2", "--tokn hunter2", "--opts hunter2", "--token x hunter2"} {
			_, bad := argsOfFlags(strings.Fields(line), schema)
			if len(bad) != 1 || strings.Contains(bad[0].Message, "hunter2") {
				t.Errorf("%s: %v", line, bad)
			}
		}
	}
}

// Any text arrives byte for byte.
func Test_12_1_TextArrivesByteForByte(t *testing.T) {
	schema := schemaNode(t, flagSchema)
	for name, v := range map[string]string{
		"100 kB": strings.Repeat("ab\n\t\"'$()`\\ü—漢🙂\u202e\u0001", 100_000/40), "newlines": "\n\r\n\n", "quotes": `"'"'\`, "dash": "--upload-pack=x", "empty": "", "equals": "=",
	} {
		for _, flag := range []string{"--stop", "--tags", "--opts.name"} {
			got, bad := argsOfFlags([]string{flag + "=" + v}, schema)
			if len(bad) > 0 || onlyString(t, got.Append(nil)) != v {
				t.Errorf("%s as %s: %v", name, flag, bad)
			}
		}
	}
}

// FuzzFlags holds for any words: they make one JSON object or a violation, and what is said again in flags reads back as
// the same arguments.
func FuzzFlags(f *testing.F) {
	f.Add("--stop", "x", "--tags=y")
	f.Add("--opts.depth:=[1]", "--", "opts=3")
	f.Add("--loud", "false", "--no-maybe")
	f.Add("--rows", `[{"a":1}]`, "--=\xff")
	schema := schemaNode(f, flagSchema)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		got, bad := argsOfFlags([]string{a, b, c}, schema)
		text := got.Append(nil)
		back, faults := jsondoc.Parse(text, jsondoc.Limits{Depth: 1 << 20, Bytes: 1 << 30})
		if len(faults) > 0 || back.Kind != jsondoc.Object {
			t.Fatalf("%q make %s: %v", []string{a, b, c}, text, faults)
		}
		if len(bad) > 0 {
			return
		}
		if !utf8.ValidString(a + b + c) {
			own := strings.HasPrefix(a, "--") || strings.HasPrefix(b, "--") // its value is hcpx's own to refuse
			if !own {
				t.Fatal("invalid UTF-8 went through")
			}
		}
		for _, m := range got.Members {
			if strings.ContainsAny(m.Key, "=.:") || m.Key == "" {
				return // a name behind -- that no word can say
			}
		}
		words := wordsOfFlags(got, schema)
		again, bad := argsOfFlags(words, schema)
		if len(bad) > 0 || !again.Equal(got) {
			t.Fatalf("%s became %q, which is %s %v", text, words, again.Append(nil), bad)
		}
	})
}
