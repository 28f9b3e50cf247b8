package explore

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bugs makes TestBugs build and search each bug.
var bugs = flag.Bool("bugs", false, "search with each seeded bug, too; a build for each")

// bug is a rule of package operation, or of a package beside it, that is taken out.
type bug struct {
	name, file, old, new string
}

// seeded returns one bug for each rule on which an invariant of this search hangs.
func seeded() []bug {
	return []bug{
		{"an end that another send may change is not flushed", "sending.go",
			"	return stored && age >= 0 &&", "	return age >= 0 &&"},
		{"a refusal whose end is not written is told", "end.go",
			"		if ok || !d.mayChange() {", "		if ok || d.write == EndConfirmed {"},
		{"the window does not count", "window.go",
			"	case age < -c.Skew(window), age >= window-c.Margin(window):\n", "	case age < -c.Skew(window):\n"},
		{"an earlier process's doubt is forgotten", "open.go",
			"	g.Doubted = s.MaybeSent\n", "	g.Doubted = false\n"},
		{"a record is not marked before it is sent", "open.go",
			"		o.MaybeSent, o.FirstSent = true, first\n", "		o.FirstSent = first\n"},
		{"an operation that stays open is written as never sent", "write.go",
			"	c.Unmark = d.write == LeaveUnsent ||", "	c.Unmark = d.write == LeaveOpen || d.write == LeaveUnsent ||"},
		{"a refusal in a 200 counts as a success", "proof.go",
			"AlreadyDone: v.AlreadyDone, Refused: v.Refused, Stored: v.Stored}", "AlreadyDone: v.AlreadyDone, Stored: v.Stored}"},
		{"by other facts a 2xx confirms, although its outcome stands in its body", "proof.go",
			"(v.AlreadyDone || v.Refused || hides || status >= 400)", "(v.AlreadyDone || v.Refused || status >= 400)"},
		{"equal errors do not end a drive", "wait.go", "	case p.Errors >= ErrorsMax:", "	case p.Errors > ErrorsMax:"},
		{"a held operation is gone on with", "open.go",
			"	case o.State == persist.StateHeld && !o.IsForCaller():\n		return SaysHeld\n", ""},
		{"a promise to send is forgotten with the record", "write.go",
			"d.write == EndAbsent) && op.Enqueued:", "d.write == EndAbsent) && false:"},
		{"an abandoned operation counts as absent", "verdict.go",
			"	case persist.StateAbandoned:\n		return Abandoned\n", "	case persist.StateAbandoned:\n		return Absent\n"},
		{"an answer is told before one that the journal must have first", "write.go",
			"&& !d.given.Pass && !d.mustFlush(now)", "&& !d.given.Pass"},
		{"the same is begun beside what is unresolved", "../intent/begin.go", "	return Unresolved\n}", "	return NotInTheWay\n}"},
		{"what a pass has ended is not unreported", "op.go", "return k.Generated && !told }", "return false }"},
		{"what a pass has ended stops nobody", "../intent/begin.go", "ended && !o.Unreported,", "ended,"},
		{"a person ends what has ended", "../acts/acts.go", "	case o.State.Final():\n		return HasEnded\n", ""},
		{"a lookup that does not tell settles as absent", "../acts/rekey.go", "return f == classify.FindingNone }", "return f != classify.FindingOther }"},
		{"a token is replaced after a send", "op.go", "return o.ServerToken && !o.MaybeSent && (!o.Token || o.Sends == 0) }", "return o.ServerToken && (!o.Token || o.Sends >= 0) }"},
		{"a token is written when it is too late", "token.go", "		d.halt(Unsure, Proof{})\n	case d.op.TooOld(now): // an operation in doubt has its token\n		d.halt(TooOld, d.late())\n	default:\n		return true\n", "		d.halt(Unsure, Proof{})\n	default:\n		return true\n"},
		{"the time for a first send does not count", "sending.go", "	return !s.SendBefore.IsZero() && now.After(s.SendBefore)\n", "	return false\n"},
		{"an Enqueue goes on with what is held", "promise.go", "	case held && !o.IsForCaller() &&", "	case false && !o.IsForCaller() &&"},
		{"an end is due after the time for sends", "write.go", "!until.IsZero() && at.After(over) {", "false && at.After(over) {"},
		{"plain HTTP is shown any refusal", "proofs.go", "	return status >= 400 && !p.doubtBefore &&", "	return status >= 400 &&"},
		{"a caller of plain HTTP that decides is not waited for", "write.go", "d.m.Shown && !d.op.Enqueued {", "false && !d.op.Enqueued {"},
		{"a request that cannot be compared counts as the same", "open.go", "	case c.Request == Incomparable:\n		return SaysIncomparable\n	case c.Request != Same:", "	case c.Request != Same && c.Request != Incomparable:"},
		{"whoever asks again sends what no key protects", "window.go", "	case inDoubt && !o.Protected:", "	case false && !o.Protected:"},
		{"the end that a call writes is not owed", "write.go", "!o.Results || state", "!o.Results || grace > 0 || state"},
		{"what another operation has on the wire is sent", "attempt.go", "	d.halt(TakenKey, Proof{Hold: persist.HoldMismatch})\n", "	d.attempts++\n	d.step = Send\n"},
		{"what another operation has on the wire waits for the next send", "attempt.go", "	d.halt(TakenKey, Proof{Hold: persist.HoldMismatch})\n", "	d.halt(TakenKey, Proof{})\n"},
		{"what took effect is begun once more", "../acts/anew.go", "		ended = o.Standing == operation.Absent || o.Standing == operation.Refused\n", "		ended = o.State.Final()\n"},
		{"a settlement is taken back beside a successor", "../acts/anew.go", "return s.Replaced || s.Higher || s.Taken }", "return s.Taken }"},
		{"the server's word is taken back", "../acts/anew.go", "		ended = o.State == persist.StateSettled ||", "		ended = o.State.Final() ||"},
		{"a reopened operation is sent again", "../acts/anew.go", "	o = HeldFor(o, persist.HoldReopened)\n", "	o = HeldFor(o, persist.HoldCaller)\n"},
		{"evidence does not stop a drive before it begins", "open.go", "	case o.EndsByEvidence():\n		return IsProven\n", ""},
		{"a drive does not heed evidence at its end", "write.go", "	d.heedEvidence()\n", ""},
		{"a refusal counts more than evidence", "write.go", "d.write == EndConfirmed && d.Standing() != Refused\n", "d.write == EndConfirmed\n"},
		{"a person ends it otherwise than its evidence", "../acts/acts.go", "	case o.EndsByEvidence() && !e.Happened:\n", "	case false:\n"},
		{"what may still be sent is begun once more", "../acts/anew.go", "	case act != Unsettles && now.Before(o.Deserted):\n		return IsSending\n", ""},
		{"what an event proves does not stop its successor", "../intent/successor.go", "	case o.HadNoEffect():\n		return o.Witnessed\n", "	case o.HadNoEffect():\n		return false\n"},
		{"a successor of what an event proves waits for its next send", "attempt.go", "d.halt(OldHappened, Proof{Hold: persist.HoldPredecessor})\n", "d.halt(OldHappened, Proof{})\n"},
		{"what was promised a later send is held as too late", "write.go", "	case promised && d.proof.Kind == ProvesExpiry", "	case promised && false && d.proof.Kind == ProvesExpiry"},
		{"an attempt too many is made", "wait.go", "	case p.Attempts >= p.Client.MaxAttempts:", "	case p.Attempts > p.Client.MaxAttempts:"},
		{"a server that goes on to work is asked too often", "wait.go", "	case p.InFlight >= p.Client.MaxInFlight && p.InFlight > 0:", "	case false:"},
		{"what needs a token is marked before it has one", "open.go", "	if !o.MaybeSent && !WantsToken(&o) {", "	if !o.MaybeSent {"},
		{"what was never sent is undone", "sending.go", "return s.MaybeSent || s.Sends > 0 }", "return true }"},
		{"a Rekey forgets an earlier hold", "../acts/rekey.go", "	why := persist.HoldRekeyHeld\n", "	why := persist.HoldRekey\n"},
		{"what was held before a Rekey is sent after it", "../acts/rekey.go", "	case before.Hold == persist.HoldRekeyHeld:\n		o.Hold = persist.HoldUnclear\n", ""},
		{"a Rekey looks without a hold", "../acts/rekey.go", "	if o.IsRekeyed() && !o.NextAttempt.IsZero() {", "	if o.IsRekeyed() || o.State == persist.StateHeld {"},
		{"a skipped generation gets no placeholder", "../intent/placeholder.go", "	return !elder.Named && (!stands", "	return elder.Named && (!stands"},
		{"a generation that was begun too early is sent", "../intent/successor.go", "		return byPerson || s.Begun || s.Early ||", "		return byPerson || s.Begun ||"},
		{"a skipped generation tells nothing of the next one", "open.go", "	case o.Skipped && c.Replaced: // whatever the request\n		return SaysReplaced\n", ""},
		{"a lost lease does not count", "attempt.go", "d.history.InDoubt(), now); {\n	case !sure:\n		d.halt(Unsure, Proof{})\n", "d.history.InDoubt(), now); {\n"},
	}
}

// TestBugs: the search finds each bug. Without -bugs it looks only whether the rules still stand where they are taken out.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, b := range seeded() {
		t.Run(b.name, func(t *testing.T) {
			if !*bugs { // builds are made one after the other
				t.Parallel()
			}
			dir := t.TempDir()
			list, err := b.overlay(dir)
			if err != nil {
				t.Fatal(err)
			}
			if *bugs {
				b.find(t, dir, list)
			}
		})
	}
}

// overlay writes the file without the rule, and the list of replaced files.
func (b *bug) overlay(dir string) (list string, err error) {
	path, err := filepath.Abs(filepath.Join("..", b.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), b.old); n != 1 {
		return "", fmt.Errorf("the text of %q stands %d times in %s, want once; adapt seeded to the source", b.name, n, b.file)
	}
	copied, list := filepath.Join(dir, "copy.go"), filepath.Join(dir, "overlay.json")
	entries, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	return list, errors.Join(err, os.WriteFile(list, entries, 0o600), os.WriteFile(copied, []byte(strings.Replace(string(text), b.old, b.new, 1)), 0o600))
}

var broken = regexp.MustCompile(`breaks invariant ([^\n]*)`)

// find searches with the bug.
func (b *bug) find(t *testing.T, dir, list string) {
	t.Helper()
	binary := filepath.Join(dir, "explore.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags", "-s -w", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "-test.run", "^TestNoHistoryBreaks$", "-first", "-until", "200000").CombinedOutput()
	m := broken.FindSubmatch(out)
	if err == nil || m == nil {
		t.Fatalf("not found: %v\n%s", err, out)
	}
	t.Logf("found: %s", m[1])
}
