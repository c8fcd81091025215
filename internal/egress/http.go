package egress

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
)

// Bounds of a request's head.
const (
	maxHead  = 16 << 10
	maxLines = 100
)

// request is the head of one proxy request, as it goes on.
type request struct {
	connect bool
	host    string
	port    uint16
	head    []byte // what the server gets; empty for CONNECT
	body    int64  // bytes that follow it, -1 = as many as come
}

// errRequest is a head that no request of a proxy has.
var errRequest = errors.New("no proxy request")

// readRequest reads the head of CONNECT host:port, or of a request with a whole http address.
func readRequest(in *bufio.Reader) (request, error) {
	lines, err := readHead(in)
	if err != nil {
		return request{}, err
	}
	method, rest, _ := strings.Cut(lines[0], " ")
	where, version, _ := strings.Cut(rest, " ")
	if !isToken(method) || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return request{}, errRequest
	}
	if method == "CONNECT" {
		host, port, err := splitAuthority(where, 0)
		return request{connect: true, host: host, port: port}, err
	}
	if len(where) < 7 || !strings.EqualFold(where[:7], "http://") {
		return request{}, errRequest
	}
	authority, path := where[7:], "/"
	if at := strings.IndexAny(authority, "/?"); at >= 0 {
		authority, path = authority[:at], authority[at:]
	}
	if path[0] == '?' {
		path = "/" + path
	}
	r := request{}
	if r.host, r.port, err = splitAuthority(authority, 80); err != nil {
		return request{}, err
	}
	fields, err := r.fields(lines[1:])
	if err != nil {
		return request{}, err
	}
	// The name that was checked is the name that the server sees, and one connection carries one request.
	r.head = []byte(method + " " + path + " " + version + "\r\nHost: " + authority + "\r\n" + fields + "Connection: close\r\n\r\n")
	return r, nil
}

// readHead reads lines up to the empty one. A line ends with \r\n, and no other control character stands in it.
func readHead(in *bufio.Reader) ([]string, error) {
	var lines []string
	for size := 0; ; {
		raw, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		size += len(raw)
		line, ok := strings.CutSuffix(string(raw), "\r\n")
		if !ok || size > maxHead || len(lines) > maxLines || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, errRequest
		}
		if line == "" {
			if len(lines) == 0 {
				return nil, errRequest
			}
			return lines, nil
		}
		lines = append(lines, line)
	}
}

// fields copies what concerns the server and finds how long the body is.
func (r *request) fields(lines []string) (string, error) {
	var kept strings.Builder
	lengths, coded := 0, false
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) {
			return "", errRequest
		}
		switch value = strings.Trim(value, " \t"); strings.ToLower(name) {
		case "host", "connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "trailer", "upgrade":
			continue
		case "transfer-encoding":
			coded = true
			r.body = -1
		case "content-length":
			n, err := strconv.ParseUint(value, 10, 62)
			if err != nil {
				return "", errRequest
			}
			lengths++
			r.body = int64(n)
		}
		kept.WriteString(name + ": " + value + "\r\n")
	}
	if lengths > 1 || lengths == 1 && coded {
		return "", errRequest // two readers could see two bodies
	}
	return kept.String(), nil
}

// splitAuthority reads host:port, or host where there is a usual port.
func splitAuthority(s string, usual uint16) (string, uint16, error) {
	host, port := s, usual
	if at := strings.LastIndexByte(s, ':'); at >= 0 && !strings.HasSuffix(s, "]") {
		n, err := parsePort(s[at+1:])
		if err != nil {
			return "", 0, errRequest
		}
		host, port = s[:at], n
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || !strings.Contains(inner, ":") {
			return "", 0, errRequest
		}
		host = inner
	} else if strings.Contains(host, ":") {
		return "", 0, errRequest
	}
	if host == "" || port == 0 || strings.ContainsAny(host, "@/ []%") {
		return "", 0, errRequest
	}
	return host, port, nil
}

// isToken says whether s is a method or a field's name.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
