package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// The parts of the private directory.
const (
	homePart = "home"
	tempPart = "tmp"
	binPart  = "bin"
)

// Environ implements Sandbox: the environment is built from nothing (§10.2). home is the private directory;
// the Spec's own names come last and cannot be doubled by the ones before.
func (s *System) Environ(spec *Spec, home string) []string {
	env := make([]string, 0, 5+len(spec.Env))
	if spec.Network.Mode == "hosts" && !spec.Native {
		env = append(env, proxied()...) // a manifest cannot declare these names
	}
	for _, own := range [...]string{
		"PATH=" + home + "/" + binPart,
		"HOME=" + home + "/" + homePart,
		"TMPDIR=" + home + "/" + tempPart,
		"LANG=C.UTF-8",
		"TZ=" + s.zone(),
	} {
		name, _, _ := strings.Cut(own, "=")
		if !declares(spec.Env, name) {
			env = append(env, own)
		}
	}
	return append(env, spec.Env...)
}

func declares(env []string, name string) bool {
	for _, entry := range env {
		if strings.HasPrefix(entry, name) && strings.HasPrefix(entry[len(name):], "=") {
			return true
		}
	}
	return false
}

// localZone is the machine's time zone for TZ: the name that /etc/localtime links to, the file itself when
// it is none, UTC when there is nothing. The caller's own TZ is ambient and does not count.
func localZone() string {
	const file = "/etc/localtime"
	target, err := os.Readlink(file)
	if err != nil {
		if _, err := os.Stat(file); err != nil {
			return "UTC"
		}
		return ":" + file
	}
	if _, name, ok := strings.Cut(filepath.ToSlash(target), "zoneinfo/"); ok && name != "" {
		return name
	}
	return ":" + file
}
