package sandboxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HelperArg is the first argument that turns a test binary into the helper program.
const HelperArg = "sandbox-helper"

// Helper becomes the helper program when the process was started as one; it does not return then. Call it
// first in TestMain.
func Helper() {
	if len(os.Args) < 3 || os.Args[1] != HelperArg {
		return
	}
	// Not os.Exit: a helper that is built with the race detector would wait a second before it ends.
	syscall.Exit(help(os.Args[2], os.Args[3:]))
}

func help(verb string, args []string) int {
	var err error
	switch verb {
	case "raw":
		fmt.Print(strings.Join(append(args, ""), "\x00"))
	case "own":
		err = own(os.Getenv(args[0]))
	case "env":
		err = json.NewEncoder(os.Stdout).Encode(os.Environ())
	case "pwd":
		var dir string
		dir, err = os.Getwd()
		fmt.Print(dir)
	case "cat":
		_, err = io.Copy(os.Stdout, os.Stdin)
	case "exit":
		n, _ := strconv.Atoi(args[0])
		return n
	case "stderr":
		n, _ := strconv.Atoi(args[0])
		fmt.Fprint(os.Stderr, strings.Repeat("x", n)+"end")
	case "spew":
		for line := []byte(strings.Repeat("y", 4096)); err == nil; {
			_, err = os.Stdout.Write(line)
		}
	case "die":
		return die()
	case "read":
		var text []byte
		text, err = os.ReadFile(args[0])
		_, _ = os.Stdout.Write(text)
	case "home":
		var text []byte
		text, err = os.ReadFile(os.Getenv("HOME") + "/" + args[0])
		_, _ = os.Stdout.Write(text)
	case "given":
		err = given(args[0])
	case "write":
		err = os.WriteFile(args[0], []byte("written"), 0o644)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "leave":
		err = leave(args[0], args[1:])
	case "close":
		if err := errors.Join(os.Stdin.Close(), os.Stdout.Close(), os.Stderr.Close()); err != nil {
			return 4
		}
		time.Sleep(100 * time.Millisecond)
		return 3
	default:
		err = fmt.Errorf("the helper knows no %q", verb)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// given reads a file of the run by its variable, and says its mode.
func given(name string) error {
	path := os.Getenv(name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s %v %s", text, info.Mode(), path)
	return nil
}

// own looks into a private directory, says what it found, and leaves something that resists removal.
func own(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		fmt.Print("empty")
	}
	if err := os.MkdirAll(dir+"/deep/er", 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/deep/er/file", []byte("left"), 0o400); err != nil {
		return err
	}
	return os.Chmod(dir+"/deep/er", 0)
}

func die() int {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	fmt.Fprintln(os.Stderr, err)
	time.Sleep(time.Minute)
	return 1
}

// leave starts a process that outlives this one and holds its output; with "away" in a session of its own, and
// with "daemon" by a child that ends, without environment or output. The marks stand in its arguments.
func leave(how string, marks []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if how == "daemon" {
		cmd := exec.Command(self, append([]string{HelperArg, "leave", "scrubbed"}, marks...)...)
		cmd.SysProcAttr = detached()
		return cmd.Run()
	}
	cmd := exec.Command(self, append([]string{HelperArg, "stubborn"}, marks...)...)
	cmd.Args[0] = os.Args[0]
	if how == "scrubbed" {
		cmd.Env = []string{}
	} else {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if how != "near" {
		cmd.SysProcAttr = detached()
	}
	return cmd.Start()
}
