//go:build !unix

package settings

// noFollow: links are followed where the system has no way to refuse them.
const noFollow = 0
