package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sourceBug is a bug for which no seam has room: a text that stands once in the source
// of one package is replaced by another in a copy that the compiler reads instead. Who
// changes the text adapts it here.
type sourceBug struct {
	Bug
	dir      string // of the package, from the root of the module
	old, new string
}

// sourceBugs lists them.
func sourceBugs() []sourceBug {
	return []sourceBug{
		{"a request that was used is read as it is left", "internal/request",
			"	case !usedUp:\n", "	case usedUp, !usedUp:\n"},
		{"an error before the start says no effect, whatever stands under the key", "internal/run",
			"range named.IDs() {\n		at, rec :=", "range (&request.Named{}).IDs() {\n		at, rec :="},
		{"an error before the start says no effect, whatever stands without a key", "internal/run",
			` && named.Origin != "":`, ` && named.Origin != named.Origin:`},
		{"another request under the key of what took effect is told no effect", "internal/operation",
			"Succeeded: {Final, Unknown, Final, Unknown, Final, Final},", "Succeeded: {Final, Unknown, Final, Unknown, Final, NoEffect},"},
		{"what goes on is told to be final", "internal/operation",
			"Open:      {Unknown, Unknown, Unknown, Unknown, Unknown, Unknown},", "Open:      {Unknown, Unknown, Final, Unknown, Final, Final},"},
		{"what was refused is told to have taken effect", "internal/operation",
			"	case Refused:\n		return persist.EffectRefused\n", "	case Refused:\n		return persist.EffectHappened\n"},
		{"a final answer is forgotten after an attempt that was not sent", "internal/classify",
			"	case h.counts:\n		return h.keep(v.Again), true\n", "	case h.counts:\n		return v, false\n"},
		{"a final answer is forgotten after a refusal", "internal/classify",
			"return h.keep(v.Again), true\n		}\n		h.setLatest(v)", "h.setLatest(v)\n		}\n		h.setLatest(v)"},
		{"an operation's place is given up when its answer is told", "internal/inflight",
			"	c.table.ending[c] = true\n", "	c.table.ending[c] = true\n	delete(c.table.calls, c.record.ID)\n"},
		{"what is unfinished is listed without a wait for the ends of told answers", "internal/run",
			"c.engine.recorded(ctx, func(persist.ID) bool { return true }); err != nil {\n			yield",
			"c.engine.recorded(ctx, func(persist.ID) bool { return false }); err != nil {\n			yield"},
		{"a Do that has forgotten its record does not look at the key again", "internal/run",
			"	t.drive.OtherFound(!free)\n", "	d.watched.endUnless(false)\n	t.drive.OtherFound(!free && false)\n"},
		{"a page with a 200 is a success", "internal/classify",
			"	case r.isUnaskedPage(p), r.isUnaskedText(p):\n", "	case false:\n"},
		{"a page with a 4xx is a final refusal", "internal/classify",
			"	return Verdict{Kind: KindRefused, Flaw: flaw}\n", "	return Verdict{Kind: KindFinal}\n"},
		{"no matcher reads what is compressed", "internal/coding",
			"		r = io.LimitReader(plain, limit+1)\n", "		return nil, false\n"},
		{"a call that names an account does not look at what stands under none", "internal/run",
			"range named.Unassigned() {", "range (&request.Named{}).Unassigned() {"},
		{"another's credentials count as the caller's own", "persist",
			"				return OtherOwner\n", "				return SameOwner\n"},
		{"a claim marks what may not be sent any more", "persist",
			"!r.SendBefore.IsZero() && !now.Before(r.SendBefore)", "!r.SendBefore.IsZero() && now.Before(time.Time{})"},
		{"a key is taken to protect whatever the method", "internal/request",
			"coverageOf(slices.Contains(p.Methods, rec.Method))", "coverageOf(slices.Contains(p.Methods, rec.Method) || true)"},
		{"an answer that the server does not store is asked for again", "internal/operation",
			"	case o.AskAgain:\n", "	case o.Answered:\n"},
		{"an answer is asked for again with a request whose body was swept", "internal/operation",
			" && !rec.RequestGone(),\n", ",\n"},
		{"the business's own key is begun beside what is in doubt under a generated one", "internal/run",
			"if op.named.Unnamed {\n		if err", "if op.named.Unnamed && !op.rec.Business {\n		if err"},
		{"acts are not bound to what was seen", "internal/run",
			"act); why != \"\" {\n		return errors.New(why)", "act); why != why {\n		return errors.New(why)"},
		{"what a function of the Config asks for has the key of its caller's context", "internal/inflight",
			"{ return key == RequestKey{} }", "{ return key == workKey{} }"},
		{"what an operator does goes on for those who have joined it", "internal/run",
			"do(ownCall{call, within}, rec.ID)", "do(call, rec.ID)\n		_ = within"},
		{"a window that one client has corrected does not count", "internal/operation",
			"s.Window = min(s.Window, window)", "s.Window = max(s.Window, 0)"},
		{"what one client leaves out as a credential makes it another request", "internal/request",
			"	case same && s.uncompared(standing):\n		return CannotTell", "	case same && s.uncompared(standing):\n		return OtherRequest"},
		{"a sweep goes by the Config of who sweeps", "internal/run",
			"persist.Limits{KeepAnswer: c.cfg.KeepAnswer}, nil", "persist.Limits{Prune: true, KeepAnswer: c.cfg.KeepAnswer, KeepKey: c.cfg.KeepKey}, nil"},
		{"the pauses of who tries count", "internal/run",
			"return operation.OpOf(&t.rec, t.prof.Window.Floor)", "own := t.rec\n	own.Pauses = t.cfg.Retry.pauses()\n	return operation.OpOf(&own, t.prof.Window.Floor)"},
		{"a carrier of a later build is taken for none", "internal/request",
			"if !slices.Contains(places, profile.Place(rec.Carrier)) {", "if !slices.Contains(append(places, profile.Place(rec.Carrier)), profile.Place(rec.Carrier)) {"},
		{"a recipe of a later build makes it another request", "internal/request",
			"	case !known:\n		return CannotTell\n", "	case !known:\n		return OtherRequest\n"},
		{"what a call leaves to its limiter was never sent", "internal/operation",
			"	o.MaybeSent, o.FirstSent = before.MaybeSent, before.FirstSent\n", "	o.MaybeSent, o.FirstSent = false, time.Time{}\n"},
	}
}

// root is the root of the module, from this folder.
const root = "../.."

// source gives the file that holds the text, and all that it holds.
func (b sourceBug) source() (path, text string, err error) {
	files, err := filepath.Glob(filepath.Join(root, b.dir, "*.go"))
	n := 0
	for _, file := range files {
		read, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		if found := strings.Count(string(read), b.old); found > 0 && !strings.HasSuffix(file, "_test.go") {
			n += found
			path, text = file, string(read)
		}
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("the text that %q replaces stands %d times in %s, want once; adapt sourceBugs to the source:\n%s", b.Bug, n, b.dir, b.old)
	}
	return path, text, err
}

// overlay writes the file with the bug, and the list of replaced files.
func (b sourceBug) overlay(dir string) (list string, err error) {
	path, text, err := b.source()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	copied, list := filepath.Join(dir, "copy.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(copied, []byte(strings.Replace(text, b.old, b.new, 1)), 0o600); err != nil {
		return "", err
	}
	entries, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	return list, errors.Join(err, os.WriteFile(list, entries, 0o600))
}

var foundLine = regexp.MustCompile(`found by seed (\d+) after (\d+) operations: (.*)`)

var (
	panicLine  = regexp.MustCompile(`(?m)^panic: .*`)
	playedLine = regexp.MustCompile(`(?m)^playing seed (\d+) until (\d+) operations$`)
)

// find builds the simulator on the source with the bug, and plays seeds until one
// breaks an invariant, or the client panics.
func (b sourceBug) find(t *testing.T, dir, list string) (f found) {
	t.Helper()
	binary := filepath.Join(dir, "sim.test")
	run := func(name string, args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "test", "-c", "-ldflags", "-s -w", "-overlay", list, "-o", binary, "."); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	out, err := run(binary, "-test.v", "-test.run", "TestFind$", "-find")
	m, what := foundLine.FindStringSubmatch(out), ""
	if m != nil {
		what = m[3]
	}
	switch panicked := panicLine.FindString(out); {
	case err != nil && panicked != "": // an answer that the bug has lost may be one that the client goes on to use
		if played := playedLine.FindAllStringSubmatch(out, -1); len(played) > 0 {
			m, what = played[len(played)-1], panicked
		}
	case err != nil:
		t.Fatalf("%s: %v\n%s", binary, err, out)
	}
	f.bug, f.what = b.Bug, what
	if m != nil {
		f.seed, _ = strconv.ParseUint(m[1], 10, 64)
		f.operations, _ = strconv.Atoi(m[2])
	}
	return f
}

// TestSourceBugs wants each found. Without -bugs, which takes a build for each, it
// only looks whether the texts still stand where they are replaced.
func TestSourceBugs(t *testing.T) {
	t.Parallel()
	for _, bug := range sourceBugs() {
		t.Run(string(bug.Bug), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			list, err := bug.overlay(dir)
			if err != nil {
				t.Fatal(err)
			}
			if *buildBugs {
				wantFound(t, bug.find(t, dir, list))
			}
		})
	}
}
