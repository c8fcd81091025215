//go:build !linux

package audit

import "errors"

// systemChild needs file systems and logs that are made for the test.
func systemChild(string, string) error { return errors.ErrUnsupported }
