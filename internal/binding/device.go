package binding

import (
	"context"
	"net/url"
	"strings"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Times of the device flow (RFC 8628): the pause where the server names none, and what slow_down adds.
const (
	pollPause = 5 * time.Second
	slowDown  = 5 * time.Second
	maxPause  = time.Minute
)

// device is the device flow: a code that a person types on another device, and polls until he has.
func (h *hub) device(ctx context.Context, src *manifest.Source, p Person, r *record) *protocol.Error {
	if p.Visit == nil {
		return failed(Missing, "The source needs a person who opens a page, and nobody can be told here.")
	}
	form := url.Values{}
	target(src, r.Scopes, form)
	c := call{to: src.AuthURL, form: form}
	h.identify(src, r.Client, &c)
	a, err := h.wire().post(ctx, c)
	if err != nil {
		return err
	}
	root, err := h.understand(a, src.AuthURL)
	if err != nil {
		return err
	}
	w, err := waitOf(root, src)
	if err != nil {
		return err
	}
	p.Visit(w.address, w.code)
	ctx, cancel := context.WithTimeout(ctx, w.valid)
	defer cancel()
	got, err := h.poll(ctx, src, w, r.Client)
	if err != nil {
		return err
	}
	r.Refresh = got.refresh
	r.put(src, "", got.token)
	return nil
}

// waiting is what the server said at the start of a device flow.
type waiting struct {
	device, address, code string
	valid, pause          time.Duration
}

func waitOf(root *jsondoc.Node, src *manifest.Source) (waiting, *protocol.Error) {
	who := "The server " + host(src.AuthURL)
	text := func(key string) string {
		if n := root.Get(key); n != nil && n.Kind == jsondoc.String {
			return n.Text
		}
		return ""
	}
	w := waiting{device: text("device_code"), address: text("verification_uri"), code: text("user_code"), pause: pollPause}
	if w.address == "" {
		w.address = text("verification_url") // as an early server of the flow writes it
	}
	u, fault := url.Parse(w.address)
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if w.device == "" || w.code == "" || len(w.code) > 64 || strings.ContainsFunc(w.code, control) ||
		fault != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsFunc(w.address, control) {
		return w, failed(Malformed, who+" gave no code and address that a person could use.")
	}
	var err *protocol.Error
	if w.valid, err = lifetime(root.Get("expires_in"), who); err != nil {
		return w, err
	}
	if w.valid == 0 || w.valid > maxVisit {
		w.valid = maxVisit
	}
	if n := root.Get("interval"); n != nil {
		seconds, ok := secondsOf(n)
		if !ok || seconds < 1 {
			return w, failed(Malformed, who+" gave an interval between questions that is less than a second, or is no number.")
		}
		w.pause = time.Duration(min(seconds, maxPause.Seconds())) * time.Second
	}
	return w, nil
}

// poll asks until the person has decided or the code is over. A server that fails now and then, or is slow, is asked
// again after a longer pause; every other answer is the end.
func (h *hub) poll(ctx context.Context, src *manifest.Source, w waiting, client string) (issued, *protocol.Error) {
	form := func() url.Values { return url.Values{"grant_type": {grantDevice}, "device_code": {w.device}} }
	for pause := w.pause; ; {
		if h.Sleep(ctx, pause) != nil {
			return issued{}, waited(ctx, "the person at "+host(src.AuthURL))
		}
		got, err := h.ask(ctx, src, client, form())
		if err == nil {
			return got, nil
		}
		word, _ := err.Details["error"].(string)
		switch reason := reasonOf(err); {
		case word == "authorization_pending":
		case word == "slow_down":
			pause = min(pause+slowDown, maxPause)
		case ctx.Err() != nil:
			return issued{}, waited(ctx, "the person at "+host(src.AuthURL))
		case reason == Server || reason == Timeout:
			pause = min(2*pause, maxPause)
		default:
			return issued{}, err
		}
	}
}
