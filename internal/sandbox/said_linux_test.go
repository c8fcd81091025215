package sandbox

import "testing"

// §10.4: the words by which programs tell of a limit, as C programs, Python, the loader and shells write them; a line that
// speaks of something else says nothing, and a run that worked says nothing either.
func Test_10_4_limits_by_words(t *testing.T) {
	for words, want := range map[string]string{
		"cat: x: Too many open files\n":                          "open_files",
		"OSError: [Errno 24] Too many open files: '/dev/null'\n": "open_files",
		"x\nprog: error while loading shared libraries: libz.so.1: cannot open shared object file: Error 24\nmore\n": "open_files",
		"open: No file descriptors available.\n":      "open_files",
		"OSError: [Errno 27] File too large: 'big'\n": "file_size",
		"head: write error: File too large\n":         "file_size",
		"sh: 1: CPU time limit exceeded\n":            "cpu",
		"file too large for the form\n":               "",
		"Error 24 of 30: nothing\n":                   "",
		"Error 240\n":                                 "",
		"":                                            "",
	} {
		o := Outcome{Exit: 1, Stderr: []byte(words)}
		if o.said(); o.Limit != want {
			t.Errorf("%q: %q, want %q", words, o.Limit, want)
		}
		o = Outcome{Stderr: []byte(words)}
		if o.said(); o.Limit != "" {
			t.Errorf("%q, exit 0: %q", words, o.Limit)
		}
	}
}
