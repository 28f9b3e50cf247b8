// This file holds what several commands share and what belongs to none of them:
// streams, output files, bounded reading, texts.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// streams are where a command reads and writes. Tests put their own in.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func errSameFile(out, other string) error {
	return fmt.Errorf("--out %s is the same file as %s", out, other)
}

// samePath reports whether two names lead to one file, also one that is not
// there yet.
func samePath(a, b string) bool {
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(ia, ib)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// openOut is the file called name, or stdout where name is empty.
func openOut(name string, stdout io.Writer) (w io.Writer, closeOut func() error, err error) {
	if name == "" {
		return stdout, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("--out %s: %w", name, pathless(err))
	}
	return f, func() error {
		if err := f.Close(); err != nil {
			return fmt.Errorf("--out %s: %w", name, pathless(err))
		}
		return nil
	}, nil
}

// say prints one line for the person at the terminal. Nothing can be done where
// even that fails.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// joinExit adds the error of closing to the outcome of the work: what could not
// be closed is not known to be on disk.
func joinExit(err, closing error) error {
	if closing == nil {
		return err
	}
	return &exitError{status: exitUnknown, err: errors.Join(unsaid(err), closing)}
}

// unsaid is err, or nil where everything has been said.
func unsaid(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

var errTooLong = errors.New("is too long")

// readAtMost reads r whole, unless it is longer than limit.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
	}
	return b, err
}

// isToken: RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// readBounded reads a file that must not be larger than limit.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, pathless(err))
	}
	defer f.Close()
	b, err := readAtMost(f, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, pathless(err))
	}
	return b, nil
}

// pathless takes the operation and the path off a file error, for a message that
// names the file itself.
func pathless(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkFolder finds out early that a file could not be written.
func checkFolder(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("--out %s: is a directory", name)
	}
	info, err := os.Stat(filepath.Dir(name))
	switch {
	case err != nil:
		return fmt.Errorf("--out %s: %w", name, pathless(err))
	case !info.IsDir():
		return fmt.Errorf("--out %s: its folder is no folder", name)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

func quoted(list []string) []string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return q
}

// confirm asks before something that cannot be taken back. yes is the answer
// given by a flag. Without a terminal to ask on it is an error that names the flag.
func (s streams) confirm(yes bool, warning string) error {
	switch {
	case yes:
		return nil
	case !isTerminal(s.in) || !isTerminal(s.err):
		return fmt.Errorf("%s; to go ahead all the same: --yes", warning)
	}
	_, _ = fmt.Fprintf(s.err, "%s. Go ahead? [y/N] ", warning)
	answer, _ := bufio.NewReader(s.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}

// wantArgs checks the number of arguments, in words.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && least == 1 && most == 1:
			return fmt.Errorf("%s is missing; see %s --help", what, cmd.CommandPath())
		case len(args) < least:
			return fmt.Errorf("want %s; see %s --help", what, cmd.CommandPath())
		case len(args) > most && most == 0:
			return fmt.Errorf("%q is too much: it takes no arguments; see %s --help", clip(args[0]), cmd.CommandPath())
		case len(args) > most:
			return fmt.Errorf("%q is too much: want %s; see %s --help", clip(args[most]), what, cmd.CommandPath())
		}
		return nil
	}
}

// colors reports whether w shows colours: a terminal that is not a dumb one, unless
// NO_COLOR is set (no-color.org).
func colors(w any) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
