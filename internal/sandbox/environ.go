package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The parts of the private directory.
const (
	homePart = "home"
	tempPart = "tmp"
	binPart  = "bin"
	filePart = "given" // Spec.Files; it is there in a run that has some
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
	env = append(env, spec.Env...)
	for _, f := range spec.Files {
		env = append(env, f.Env+"="+home+"/"+filePart+"/"+f.Env)
	}
	return env
}

// give writes the files of a run into their directory, which is made when it is missing. The names are those of variables.
func give(dir string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, f := range files {
		if !filepath.IsLocal(f.Env) || filepath.Base(f.Env) != f.Env {
			return errors.New("a file of the run has a name that is none")
		}
		file, err := os.OpenFile(filepath.Join(dir, f.Env), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(f.Content)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes what give wrote; the directory stays, since the rules of a launcher that is kept are bound to it.
func takeBack(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	return err
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
