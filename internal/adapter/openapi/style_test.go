package openapi

import (
	"strings"
	"testing"
)

// The table of the standard (3.0.4, 3.1.1): style, explode, and how "", a text, an array and an object are written.
func Test_3_6_StyleTable(t *testing.T) {
	const array, object = `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, row := range []struct {
		style   string
		explode bool
		in      string
		want    [4]string // "", blue, array, object; "-" is refused or not defined
	}{
		{"matrix", false, inPath, [4]string{";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"}},
		{"matrix", true, inPath, [4]string{";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"}},
		{"label", false, inPath, [4]string{"-", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"}},
		{"label", true, inPath, [4]string{"-", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"}},
		{"simple", false, inPath, [4]string{"-", "blue", "blue,black,brown", "R,100,G,200,B,150"}},
		{"simple", true, inPath, [4]string{"-", "blue", "blue,black,brown", "R=100,G=200,B=150"}},
		{"simple", false, inHeader, [4]string{"", "blue", "blue,black,brown", "R,100,G,200,B,150"}},
		{"simple", true, inHeader, [4]string{"", "blue", "blue,black,brown", "R=100,G=200,B=150"}},
		{"form", false, inQuery, [4]string{"color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"}},
		{"form", true, inQuery, [4]string{"color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"}},
		{"form", false, inCookie, [4]string{"color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"}},
		{"form", true, inCookie, [4]string{"color=", "color=blue", "color=blue; color=black; color=brown", "R=100; G=200; B=150"}},
		{"spaceDelimited", false, inQuery, [4]string{"color=", "color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"}},
		{"spaceDelimited", true, inQuery, [4]string{"color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"}},
		{"pipeDelimited", false, inQuery, [4]string{"color=", "color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"}},
		{"pipeDelimited", true, inQuery, [4]string{"color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"}},
		{"deepObject", true, inQuery, [4]string{"color=", "color=blue", "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown", "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"}},
	} {
		path := "/x"
		if row.in == inPath {
			path = "/x/{color}"
		}
		explode := "false"
		if row.explode {
			explode = "true"
		}
		c := fixture{document: `{"paths":{"` + path + `":{"get":{"operationId":"op","parameters":[{"name":"color","in":"` + row.in + `","style":"` + row.style + `","explode":` + explode + `,"schema":{}}]}}}}`}.command(t, Options{})
		for i, value := range []string{`""`, `"blue"`, array, object} {
			call, bad := c.Render(node(t, `{"color":`+value+`}`))
			got := "-"
			if len(bad) == 0 {
				switch url := strings.TrimPrefix(call.Request.URL, "https://api.example.org/v1/x"); row.in {
				case inPath:
					got = strings.TrimPrefix(url, "/")
				case inQuery:
					got = strings.TrimPrefix(url, "?")
				case inHeader:
					got = header(call.Request, "Color")
				case inCookie:
					got = header(call.Request, "Cookie")
				}
			}
			if got != row.want[i] {
				t.Errorf("%s explode %v in %s of %s: %q, want %q", row.style, row.explode, row.in, value, got, row.want[i])
			}
		}
	}
}

func Test_3_6_ValuesAreEscapedAndExact(t *testing.T) {
	doc := `{"paths":{"/x/{p}":{"parameters":[{"name":"p","in":"path","required":true,"schema":{}},{"name":"q","in":"query","schema":{}}],"get":{"operationId":"op","parameters":[
{"name":"q","in":"query","style":"form","explode":false,"schema":{}},{"name":"r","in":"query","allowReserved":true,"schema":{}},
{"name":"filter[é]","in":"query","content":{"application/json":{"schema":{}}}},{"name":"deep","in":"query","style":"deepObject","schema":{}}]}}}}`
	c := fixture{document: doc}.command(t, Options{})
	for args, want := range map[string]string{
		`{"p":"a/b c?#é%"}`: "/x/a%2Fb%20c%3F%23%C3%A9%25",
		`{"p":"a","q":["x,y","z"],"r":"/?:@!$'()*+,;=[]#&%41%4"}`:       "/x/a?q=x%2Cy,z&r=/?:@!$'()*+,;=%5B%5D%23%26%41%254",
		`{"p":12345678901234567890.50,"q":1e3,"filter[é]":{"n":1.10}}`:  "/x/12345678901234567890.50?q=1000&filter%5B%C3%A9%5D=%7B%22n%22%3A1.10%7D",
		`{"p":true,"q":[],"deep":{"a":{"b":[1,{"c":"d&e"}]},"n":null}}`: "/x/true?deep%5Ba%5D%5Bb%5D%5B0%5D=1&deep%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=d%26e",
		`{"p":"...","q":{"a":null,"b":"c=d"}}`:                          "/x/...?q=b,c%3Dd",
		`{"p":"a.b","q":null}`:                                          "/x/a.b",
	} {
		if got := strings.TrimPrefix(render(t, c, args).URL, "https://api.example.org/v1"); got != want {
			t.Errorf("%s\n%s\n%s", args, got, want)
		}
	}
}

func Test_3_6_APathValueNeverLeavesItsSegment(t *testing.T) {
	c := fixture{document: `{"paths":{"/x/{p}/y":{"get":{"operationId":"op","parameters":[{"name":"p","in":"path","required":true,"schema":{}}]}}}}`}.command(t, Options{})
	for _, value := range []string{`""`, `"."`, `".."`, `"../y"`, `"a/../../y"`, `"..%2fy"`, `"%2e%2e"`, `"%2E."`, `"a%2f..%2fb"`, `"%252e%252e%252f"`, `"..\\y"`, `"..;/y"`, `"..;y"`, `[]`, `{}`, `null`, `["..",""]`} {
		call, bad := c.Render(node(t, `{"p":`+value+`}`))
		if len(bad) == 0 {
			if value == `["..",""]` && strings.Contains(call.Request.URL, "/x/..,/y") {
				continue // a segment of its own name
			}
			t.Errorf("%s: sent as %s", value, call.Request.URL)
		} else if bad[0].Pointer != "/p" {
			t.Errorf("%s: %v", value, bad)
		}
	}
	two := fixture{document: `{"paths":{"/x/{p}{q}":{"get":{"operationId":"op","parameters":[{"name":"p","in":"path","required":true,"schema":{}},{"name":"q","in":"path","required":true,"schema":{}}]}}}}`}.command(t, Options{})
	for _, args := range []string{`{"p":".","q":"."}`, `{"p":".","q":"./y"}`, `{"p":"..","q":"\\y"}`, `{"p":"..;","q":"/y"}`, `{"p":"..%25","q":"2fy"}`} {
		if call, bad := two.Render(node(t, args)); len(bad) == 0 {
			t.Errorf("%s: two values make a step up: %s", args, call.Request.URL)
		}
	}
	label := fixture{document: `{"paths":{"/x/{p}":{"get":{"operationId":"op","parameters":[{"name":"p","in":"path","required":true,"style":"label","explode":true,"schema":{"type":"array","items":{"type":"string"}}}]}}}}`}.command(t, Options{})
	if call, bad := label.Render(node(t, `{"p":["","/y"]}`)); len(bad) == 0 {
		t.Errorf("a label makes a step up: %s", call.Request.URL)
	}
}

func Test_3_6_AHeaderIsOneLine(t *testing.T) {
	c := fixture{document: `{"paths":{"/x":{"get":{"operationId":"op","parameters":[{"name":"X-It","in":"header","schema":{}},{"name":"Accept","in":"header","schema":{}},{"name":"Host","in":"header","schema":{}}]}}}}`}.command(t, Options{})
	for _, value := range []string{`"a\r\nX: y"`, `"a\nb"`, `"a\u0000b"`, `["a","\r"]`, `"\u007f"`} {
		if _, bad := c.Render(node(t, `{"X-It":`+value+`}`)); len(bad) == 0 || bad[0].Pointer != "/X-It" {
			t.Errorf("%s: %v", value, bad)
		}
	}
	if got := header(render(t, c, `{"X-It":"a\tb é"}`), "X-It"); got != "a\tb é" {
		t.Errorf("%q", got)
	}
}
