package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// A script is what a process does with a journal, one operation a line:
//
//	open [VERSION]   with this version of bbolt
//	close
//	begin KEY SIZE   unless the key is there
//	many KEY N       N at the same time, every fourth of them twice
//	update KEY
//	finish KEY SIZE  and Flush
//	late KEY SIZE    finish without Flush, until a commit has taken it
//	leave KEY SIZE   finish without Flush
//	mark KEY         MarkReported, and Flush
//	forget KEY
//	sweep MAX KEEP   KEEP 0: keys, too
//	text MAX         a sweep that takes out answers, and the texts of used keys
//
// For each it writes one line "> operation", and then one of
//
//	= STATE          it returned, and all that the journal holds is durable, which is this; before that "." when it returned
//	~ STATE          it returned, and what has changed may be durable, as after leave
//	? ERROR          ErrUncertain, or the journal is not open
//	! ERROR          it was not done; then "~ STATE", of which a Finish may not be durable
//
// Before that, many writes "+ LINE" for each record when its Begin has returned.
//
// Two operations come before the journal, and write nothing:
//
//	rename NAME      the file with this name becomes the journal
//	symlink TARGET   the journal is where this leads

// runScript runs the script in the environment.
func runScript(path string) error {
	s := &script{path: path}
	for op := range strings.Lines(os.Getenv("ONCEHTTP_BOLT_SCRIPT")) {
		if name, isName := strings.CutPrefix(strings.TrimSpace(op), "rename "); isName {
			if err := os.Rename(filepath.Join(filepath.Dir(path), name), path); err != nil {
				return err
			}
			continue
		}
		if target, isTarget := strings.CutPrefix(strings.TrimSpace(op), "symlink "); isTarget {
			if err := os.Symlink(target, path); err != nil {
				return err
			}
			continue
		}
		if s.unflushed && s.j != nil && strings.TrimSpace(op) != "close" { // Close flushes, too
			s.run("flush")
		}
		s.run(strings.TrimSpace(op))
	}
	return nil
}

// run does one operation, and says so.
func (s *script) run(op string) {
	say("> " + op)
	err := s.do(strings.Fields(op))
	s.unflushed = err != nil || strings.HasPrefix(op, "leave ")
	switch {
	case errors.Is(err, persist.ErrUncertain) || s.j == nil && err != nil:
		say("? " + err.Error())
	case err != nil:
		say("! " + err.Error())
		s.sayState("~ ")
	case strings.HasPrefix(op, "leave "):
		s.sayState("~ ")
	default:
		say(". ") // since reading what the journal holds may wait for a commit
		s.sayState("= ")
	}
}

// sayState writes what the journal holds, or held when it was closed.
func (s *script) sayState(sign string) {
	if s.j != nil {
		state, err := compact(s.j)
		if err != nil {
			say("? " + err.Error())
			return
		}
		s.held = state
	}
	say(sign + s.held)
}

// say writes a line with one system call.
func say(line string) {
	if _, err := os.Stdout.WriteString(line + "\n"); err != nil {
		panic(err)
	}
}

// script is a script that runs.
type script struct {
	path      string
	j         *bolt.Journal
	held      string // what the journal held last
	unflushed bool   // a Finish may not be durable
}

// do does one operation.
func (s *script) do(op []string) error {
	ctx := context.Background()
	arg := func(i int) (n int) {
		_, _ = fmt.Sscan(op[i], &n)
		return n
	}
	if op[0] == "open" {
		version := bolt.Reviewed
		if len(op) > 1 {
			version = op[1]
		}
		j, err := bolt.Open(s.path, bolt.WithBboltVersion(bolt.Options{}, version))
		s.j = j
		return err
	}
	if s.j == nil {
		return errors.New("it is not open")
	}
	switch op[0] {
	case "close":
		err := s.j.Close()
		s.j = nil
		return err
	case "begin":
		_, _, err := s.j.Begin(ctx, begunBy(op))
		return err
	case "stats":
		say(fmt.Sprintf("+ %t", s.j.Stats().NamesSynced))
		return nil
	case "flush":
		return s.j.Flush(ctx)
	case "many":
		return s.many(op[1], arg(2))
	case "mark":
		return errors.Join(s.j.MarkReported(ctx, persist.ID{Account: "acct", Key: op[1]}), s.j.Flush(ctx))
	case "sweep":
		_, err := s.j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -time.Duration(1 - arg(2)), Max: arg(1)})
		return err
	case "text":
		_, err := s.j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, KeepText: -1, Max: arg(1)})
		return err
	}
	r, err := s.j.Get(ctx, persist.ID{Account: "acct", Key: op[1]})
	if err != nil || r.State.Final() {
		return err
	}
	switch op[0] {
	case "update":
		r.Attempts++
		_, err = s.j.Update(ctx, r)
	case "finish", "late", "leave":
		r = confirmed(r)
		r.Unreported, r.KeyTold = r.Generated, r.Generated && r.Seq%2 == 0
		r.Answer.Body = bytes.Repeat([]byte("a"), arg(2))
		err = s.finish(ctx, r, op[0])
	case "forget":
		err = s.j.Forget(ctx, r)
	default:
		err = fmt.Errorf("no operation %q", op[0])
	}
	return err
}

// begunBy is the record of "begin KEY SIZE".
func begunBy(op []string) persist.Record {
	size := 0
	_, _ = fmt.Sscan(op[2], &size)
	r := sized(op[1], size)
	r.Generated = len(op[1])%2 == 0
	return r
}

// finish finishes a record, and waits for that as its operation says.
func (s *script) finish(ctx context.Context, r persist.Record, op string) error {
	commits := s.j.Stats().Commits
	err := s.j.Finish(ctx, r)
	if err != nil || op == "leave" {
		return err
	}
	for try := 0; op == "late" && try < 100 && s.j.Stats().Commits == commits; try++ {
		time.Sleep(time.Millisecond)
	}
	if op == "late" && s.j.Stats().Commits > commits {
		return nil
	}
	return s.j.Flush(ctx)
}

// many begins n records at the same time, a part of them twice.
func (s *script) many(key string, n int) error {
	errs := make([]error, n+n/4)
	var wg sync.WaitGroup
	for at := range errs {
		wg.Go(func() {
			i := at % n
			r, _, err := s.j.Begin(context.Background(), sized(fmt.Sprintf("%s-%d", key, i), 100+i*7))
			if errs[at] = err; err == nil {
				say("+ " + compactLine(&r))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// compact is what a journal holds, in one line.
func compact(j *bolt.Journal) (string, error) {
	var lines []string
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return "", err
		}
		lines = append(lines, compactLine(&r))
	}
	slices.Sort(lines)
	return strings.Join(lines, " "), nil
}

// compactLine is everything of a record that a test compares.
func compactLine(r *persist.Record) string {
	status, answer := 0, [32]byte{}
	if a := r.Answer; a != nil {
		status, answer = a.Status, sha256.Sum256(a.Body)
	}
	body := sha256.Sum256(r.Body)
	return fmt.Sprintf("%s,%d,%d,%v,%t%t%t,%d,%x,%d,%x", r.Key, r.Seq, r.Revision, r.State, r.Swept, r.Unreported, r.Generated, r.Attempts, body[:4], status, answer[:4])
}
