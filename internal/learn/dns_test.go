package learn

import "testing"

// FuzzAnswer: whatever a name server says, reading it ends, and a name comes with addresses.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"))
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if a, ok := answer(msg); ok && (a.Name == "" || len(a.At) == 0) {
			t.Errorf("%+v", a)
		}
	})
}
