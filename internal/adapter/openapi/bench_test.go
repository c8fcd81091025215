package openapi

import (
	"context"
	"encoding/json"
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
// the same request whose answer is read by encoding/json, and to one whose answer is only read, over one kept connection
// each, in turn. It holds nothing by a clock: `go test -run Overhead -ratio 3000 -v`
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
	var ours, theirs, bare []time.Duration
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
		bare = append(bare, time.Since(begin))
		begin = time.Now()
		var value any
		if err := json.Unmarshal(fetch(t, plain, call), &value); err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, time.Since(begin))
	}
	middle := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	p, q, r := middle(ours), middle(theirs), middle(bare)
	t.Logf("p50 of %d: a command %v, net/http with its value %v, ratio %.2f; net/http alone %v, ratio %.2f", *ratio, p, q, float64(p)/float64(q), r, float64(p)/float64(r))
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
