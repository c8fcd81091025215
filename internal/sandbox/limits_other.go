//go:build !linux

package sandbox

// Held are the limits as a command gets them.
func (l Limits) Held() Limits { return l }
