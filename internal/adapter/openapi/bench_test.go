package openapi

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hcpx/internal/adapter"
)

var ratio = flag.Int("ratio", 20, "how many requests each side of the ratio sends")

// Test_3_6_Overhead shows the ratio of a command (rendered, sent, its answer read as a value) to a plain call of net/http for
// the same request, over one kept connection each, in turn. It holds nothing by a clock: `go test -run Overhead -ratio 3000 -v`
// is the figure of the record.
func Test_3_6_Overhead(t *testing.T) {
	answer := `{"items":[` + strings.Repeat(`{"id":12345,"name":"A thing","tags":["a","b"]},`, 19) + `{}]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	c := fixture{server: s.URL, binding: mock, document: op("get", "/things/{id}", `,"security":[{"b":[]}],"parameters":[{"name":"id","in":"path","required":true,"schema":{}},{"name":"page","in":"query","schema":{}}]`)}.command(t, Options{})
	args := node(t, `{"id":"a b","page":3}`)
	plain := &http.Client{Transport: &http.Transport{}}
	var ours, theirs []time.Duration
	for range *ratio {
		begin := time.Now()
		call, _ := c.Render(args)
		out, err := c.Run(context.Background(), runOf(call))
		ours = append(ours, time.Since(begin))
		if err != nil || out.Value == nil {
			t.Fatalf("%+v", err)
		}
		begin = time.Now()
		if body := fetch(t, plain, call); len(body) != len(answer) {
			t.Fatalf("%d bytes", len(body))
		}
		theirs = append(theirs, time.Since(begin))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	t.Logf("p50 of %d: a command %v, net/http %v, ratio %.2f", *ratio, ours[len(ours)/2], theirs[len(theirs)/2], float64(ours[len(ours)/2])/float64(theirs[len(theirs)/2]))
}

func fetch(t *testing.T, plain *http.Client, call *adapter.Call) []byte {
	r, err := http.NewRequest(call.Request.Method, call.Request.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret-token")
	answer, err := plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
