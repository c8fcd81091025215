package sandbox

// stderrTail is how much of stderr is kept.
const stderrTail = 64 << 10

// capture keeps stdout whole up to a cap. What comes after is counted, not kept.
type capture struct {
	cap  int
	kept []byte
	over bool
}

func (c *capture) Write(p []byte) (int, error) {
	room := c.cap - len(c.kept)
	if len(p) > room {
		c.over = true
	}
	c.kept = append(c.kept, p[:min(len(p), max(room, 0))]...)
	return len(p), nil
}

// tail keeps the last bytes of stderr.
type tail struct {
	kept []byte
	size int64
}

func (t *tail) Write(p []byte) (int, error) {
	t.size += int64(len(p))
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*stderrTail {
		t.kept = append(t.kept[:0], t.last()...)
	}
	return len(p), nil
}

func (t *tail) last() []byte { return t.kept[max(0, len(t.kept)-stderrTail):] }
