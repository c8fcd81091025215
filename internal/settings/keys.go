package settings

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is one setting: its form, its default, where it is kept. set is only called with what read gave.
type key struct {
	name   string
	preset any
	note   string                      // what a person must know who reads its value
	only   string                      // the one file in which it may stand; "" = config.toml and managed.toml
	read   func(v value) (any, string) // the typed value, or what is wrong
	set    func(s *Settings, v any)
	show   func(s *Settings) string
	// written is the value in force as the file writes it, for an error of a project; of no use where narrows is nil.
	written func(s *Settings) string
	// narrows says whether a value gives no more than what is in force; nil: a project says nothing of it (§9.3).
	narrows func(s *Settings, v any) bool
}

// may says whether the key may stand in a file of that name.
func (k key) may(file string) bool {
	if file == project {
		return k.narrows != nil
	}
	return k.only == "" || k.only == file
}

// keys is the list of all settings, in the order of `hcpx config show`.
func keys() []key {
	const mib = 1 << 20
	agents := choice("identity.agents", func(s *Settings) *string { return &s.Agents }, "detect", "trust-flags")
	agents.note, agents.narrows = "advice, no wall: a process of this user can hide from it", nil
	confirm := choice("confirm.agent", func(s *Settings) *string { return &s.ConfirmAgent }, "envelope", "ask", "approval")
	confirm.preset = "ask"
	anchor := choice("audit.anchor", func(s *Settings) *string { return &s.Anchor }, "none", "journald", "syslog")
	anchor.note, anchor.narrows = "with none, who owns the audit's files can put back an older copy of them all, unseen", nil
	vault := choice("vault.key", func(s *Settings) *string { return &s.VaultKey }, "file", "passphrase")
	vault.narrows = nil
	files := count("packs.max_files", func(s *Settings) *int64 { return &s.PackFiles }, 4096)
	bytes := size("packs.max_bytes", func(s *Settings) *int64 { return &s.PackBytes }, 64*mib)
	files.narrows, bytes.narrows = nil, nil
	return []key{
		{
			name: "store.home", preset: "", only: managed, read: place,
			set:  func(s *Settings, v any) { s.Home = v.(string) },
			show: func(s *Settings) string { return s.Home },
		},
		agents,
		confirm,
		size("limits.output", func(s *Settings) *int64 { return &s.Limits.Output }, 8*mib),
		span("limits.wall_max", func(s *Settings) *time.Duration { return &s.Limits.WallMax }, time.Hour),
		seconds(span("limits.cpu", func(s *Settings) *time.Duration { return &s.Limits.CPU }, time.Hour)),
		count("limits.files", func(s *Settings) *int64 { return &s.Limits.Files }, 1024),
		size("limits.file_size", func(s *Settings) *int64 { return &s.Limits.FileSize }, 1024*mib),
		size("limits.memory", func(s *Settings) *int64 { return &s.Limits.Memory }, 8192*mib),
		count("limits.processes", func(s *Settings) *int64 { return &s.Limits.Processes }, 4096),
		files,
		bytes,
		globs("packs.sources", "", func(s *Settings) *[]string { return &s.Sources }),
		globs("packs.allow", project, func(s *Settings) *[]string { return &s.Packs }),
		words("sandbox.accept", func(s *Settings) *[]string { return &s.Accept }, "devices", "metadata", "proc", "programs", "signals"),
		choice("sandbox.native_local", func(s *Settings) *string { return &s.Native }, "allow", "forbid"),
		choice("sandbox.dangerous", func(s *Settings) *string { return &s.Dangerous }, "allow", "forbid"),
		anchor,
		vault,
		endpoints("mothership.endpoints", func(s *Settings) *[]string { return &s.Endpoints }),
	}
}

// place is a directory: an absolute path, or one in the user's home.
func place(v value) (any, string) {
	if v.kind == text && (filepath.IsAbs(v.text) || strings.HasPrefix(v.text, "~/")) && filepath.Clean(v.text) == v.text {
		return v.text, ""
	}
	return nil, `the value is an absolute path, or one that begins with "~/", in its shortest form`
}

// globs is a list of patterns; without it everything fits, with an empty one nothing.
func globs(name, only string, at func(*Settings) *[]string) key {
	k := key{
		name: name, preset: []string(nil), only: only,
		read: func(v value) (any, string) {
			list, ok := v.texts()
			if !ok {
				return nil, name + ` is a list of patterns, as ["git", "acme-*"]`
			}
			return list, ""
		},
		set: func(s *Settings, v any) { *at(s) = v.([]string) },
		show: func(s *Settings) string {
			if *at(s) == nil {
				return "*"
			}
			return strings.Join(*at(s), ", ")
		},
	}
	if only == project {
		k.narrows = func(*Settings, any) bool { return true }
	}
	return k
}

// endpoints is a list of addresses, each exactly as it is used; without it none is named, with an empty one there are none.
func endpoints(name string, at func(*Settings) *[]string) key {
	k := globs(name, "", at)
	k.read = func(v value) (any, string) {
		list, ok := v.texts()
		if !ok || slices.ContainsFunc(list, func(s string) bool { return !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") }) {
			return nil, name + ` is a list of addresses, as ["https://id.example.org/token"]`
		}
		return list, ""
	}
	k.show = func(s *Settings) string {
		if *at(s) == nil {
			return "what a person connects"
		}
		return strings.Join(*at(s), ", ")
	}
	return k
}

// listed is a list of words as TOML writes it; none where it is empty.
func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return `["` + strings.Join(words, `", "`) + `"]`
}

// words is a list that holds some of a few words, and none by default.
func words(name string, at func(*Settings) *[]string, known ...string) key {
	return key{
		name: name, preset: []string{},
		read: func(v value) (any, string) {
			given := []string{}
			for _, word := range v.list {
				if word.kind != text || !slices.Contains(known, word.text) || slices.Contains(given, word.text) {
					return nil, fmt.Sprintf("%s is a list of some of %s", name, listed(known))
				}
				given = append(given, word.text)
			}
			if v.kind != list {
				return nil, fmt.Sprintf("%s is a list of some of %s", name, listed(known))
			}
			return given, ""
		},
		set:     func(s *Settings, v any) { *at(s) = v.([]string) },
		show:    func(s *Settings) string { return strings.Join(*at(s), ", ") },
		written: func(s *Settings) string { return listed(*at(s)) },
		narrows: func(s *Settings, v any) bool {
			return !slices.ContainsFunc(v.([]string), func(word string) bool { return !slices.Contains(*at(s), word) })
		},
	}
}

// choice is one of a few words, the first being the default, and each narrower than the one before.
func choice(name string, at func(*Settings) *string, words ...string) key {
	return key{
		name: name, preset: words[0],
		read: func(v value) (any, string) {
			if v.kind == text && slices.Contains(words, v.text) {
				return v.text, ""
			}
			return nil, name + ` is one of "` + strings.Join(words, `", "`) + `"`
		},
		set:     func(s *Settings, v any) { *at(s) = v.(string) },
		show:    func(s *Settings) string { return *at(s) },
		written: func(s *Settings) string { return `"` + *at(s) + `"` },
		narrows: func(s *Settings, v any) bool {
			return slices.Index(words, v.(string)) >= slices.Index(words, *at(s))
		},
	}
}

// span is a duration up to an hour, the longest timeout that a command may have (§3.2).
func span(name string, at func(*Settings) *time.Duration, preset time.Duration) key {
	return key{
		name: name, preset: preset,
		read: func(v value) (any, string) {
			d, err := time.ParseDuration(v.text)
			if v.kind != text || err != nil || d <= 0 || d > time.Hour {
				return nil, name + ` is a duration up to an hour, as "90s" or "15m"`
			}
			return d, ""
		},
		set:     func(s *Settings, v any) { *at(s) = v.(time.Duration) },
		show:    func(s *Settings) string { return at(s).String() },
		written: func(s *Settings) string { return `"` + shortSpan(*at(s)) + `"` },
		narrows: func(s *Settings, v any) bool { return v.(time.Duration) <= *at(s) },
	}
}

// shortSpan leaves out the seconds of whole minutes. A whole hour, the most that there is, is never exceeded.
func shortSpan(d time.Duration) string {
	if short, whole := strings.CutSuffix(d.String(), "m0s"); whole {
		return short + "m"
	}
	return d.String()
}

// seconds makes a duration one of whole seconds, where the kernel counts no less (§10.4).
func seconds(k key) key {
	read := k.read
	k.read = func(v value) (any, string) {
		d, wrong := read(v)
		if wrong == "" && d.(time.Duration)%time.Second != 0 {
			return nil, k.name + ` is a duration of whole seconds, as "90s": the kernel counts no less`
		}
		return d, wrong
	}
	return k
}

func count(name string, at func(*Settings) *int64, preset int64) key {
	show := func(s *Settings) string { return strconv.FormatInt(*at(s), 10) }
	return key{
		name: name, preset: preset, read: whole,
		set:  func(s *Settings, v any) { *at(s) = v.(int64) },
		show: show, written: show,
		narrows: func(s *Settings, v any) bool { return v.(int64) <= *at(s) },
	}
}

// size is a number of bytes, or a text with a unit.
func size(name string, at func(*Settings) *int64, preset int64) key {
	k := count(name, at, preset)
	k.written = func(s *Settings) string { return writtenSize(*at(s)) }
	k.read = func(v value) (any, string) {
		n, ok := parseSize(v.text)
		if v.kind == number {
			var err error
			n, err = strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64)
			ok = err == nil && n > 0
		}
		if v.kind != text && v.kind != number || !ok {
			return nil, name + ` is a number of bytes, or a text as "512KiB", "8MiB" or "1GiB"`
		}
		return n, ""
	}
	return k
}

func whole(v value) (any, string) {
	n, err := strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64)
	if v.kind != number || err != nil || n < 1 || n > math.MaxInt32 {
		return nil, "the value is a whole number from 1 to 2147483647"
	}
	return n, ""
}

// writtenSize is a number of bytes in the largest unit in which it is whole.
func writtenSize(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := int64(1) << (10 * (3 - i)); n%size == 0 && n/size <= math.MaxInt32 {
			return `"` + strconv.FormatInt(n/size, 10) + unit + `"`
		}
	}
	return strconv.FormatInt(n, 10)
}

func parseSize(s string) (int64, bool) {
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		digits, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
		return n << (10 * (i + 1)), err == nil && n > 0
	}
	return 0, false
}
