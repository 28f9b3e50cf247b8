package company_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var withBugs = flag.Bool("bugs", false, "TestRuleTakenOut builds the matrix on the source without each rule, and runs the rows that hold it")

// rule is a text of the source that keeps one of the rules. Without it the rows fail. Who changes the text adapts it here.
type rule struct {
	name     string
	rows     []string
	dir      string // of the package, from the root of the module
	old, new string
}

// rules lists them.
func rules() []rule {
	return []rule{
		{"what only one client compares cannot be told", []string{"SecretHeaders", "SecretParameters", "KeepHeader", "Profile/fingerprint"}, "internal/request",
			"	case same && s.uncompared(standing):\n		return CannotTell", "	case same && s.uncompared(standing):\n		return SameRequest"},
		{"a record is kept as it says", []string{"KeepKey", "KeepAnswer"}, "internal/run",
			"persist.Limits{KeepAnswer: c.cfg.KeepAnswer}, nil", "persist.Limits{Prune: true, KeepAnswer: c.cfg.KeepAnswer, KeepKey: c.cfg.KeepKey}, nil"},
		{"an error before the start looks at what stands", []string{"MaxRequestBytes", "MaxRequestHeaderBytes"}, "internal/run",
			"range named.IDs() {\n		at, rec :=", "range (&request.Named{}).IDs() {\n		at, rec :="},
		{"an answer that is not stored is not asked for again", []string{"MaxResponseBytes"}, "internal/operation",
			"	case o.AskAgain:\n", "	case o.Answered:\n"},
		{"the pauses are the record's", []string{"Retry.MaxPause", "Retry.MaxDelay"}, "internal/run",
			"return operation.OpOf(&t.rec, t.prof.Window.Floor)", "own := t.rec\n	own.Pauses = t.cfg.Retry.pauses()\n	return operation.OpOf(&own, t.prof.Window.Floor)"},
		{"the shorter window counts", []string{"Profile/window"}, "internal/operation",
			"s.Window = min(s.Window, window)", "s.Window = window"},
		{"a send may be on its way as long as its sender says", []string{"Retry.AttemptTimeout"}, "internal/operation",
			"by := s.SendUntil\n", "by := usual\n"},
		{"who reaches no server changes nothing", []string{"Transport", "Limiter/refuses"}, "internal/operation",
			"return !d.reached && d.sends == 0 && d.stop != ClockBack", "return !d.reached && d.sends < 0 && d.stop != ClockBack"},
		{"that the caller named no key decides what is looked for", []string{"NewKey", "NewKey/pointers"}, "internal/run",
			"if op.named.Unnamed {\n		if err", "if op.named.Keyless {\n		if err"},
		{"nothing stays in the hands of one whose limiter waits", []string{"Limiter/waits"}, "internal/run",
			"		if leave() && t.more(", "		if false && leave() && t.more("},
		{"what one client has begun is an operation to each", []string{"Methods"}, "internal/run",
			"	req, err := c.engine.admission.passes(req, c.engine.now())\n", "	_, err := c.engine.admission.passes, error(nil)\n"},
		{"every operation begins at one place", []string{"Profile/account header"}, "internal/intent",
			"	return at\n}", "	for i := range named {\n		named[i] = true\n	}\n	return placeInside(base, mine, named)\n}"},
		{"what was begun for a region stays there", []string{"Region"}, "internal/acts",
			"case !n.IsRegion(has.Region):", "case !n.IsRegion(has.Region) && false:"},
		{"what was begun with a credential stays with it", []string{"Credential"}, "internal/acts",
			"case !n.IsCredential(has.Credential):", "case !n.IsCredential(has.Credential) && false:"},
		{"a client sends to its origins", []string{"Origins", "Origins/elsewhere", "OriginAllowed"}, "internal/run",
			"return !g.restricted() || g.cfg.origins", "return g.restricted() || g.cfg.origins"},
		{"who does not know the profile leaves it to others", []string{"Profile/another", "ProfileOf", "ProfileByHost"}, "internal/acts",
			"	case !has.Profile:\n", "	case !has.Profile && has.Unknown != has.Unknown:\n"},
		{"where others have credentials, nothing is sent without", []string{"Authorize"}, "internal/authorized",
			"		return read.set.Find(origin)\n", "		return \"\"\n"},
		{"the time for a first send is the record's", []string{"EnqueueMaxAge"}, "internal/operation",
			"return !s.SendBefore.IsZero() && now.After(s.SendBefore)", "return !s.SendBefore.IsZero() && now.Before(s.FirstSent)"},
	}
}

// noRule are rows that hold no rule of their own, with the reason: nothing that is decided about another client's operation may read
// the field, and that is what they show.
var noRule = map[string]string{
	"Account":                "what stands under none is found by invariant 24's tests, and by the simulator's seeded bug of that name",
	"Token":                  "the token is in the record once it is sent: nothing of another client's function is read",
	"Reconcile":              "it acts on what is held, as it was given",
	"Credential/or none":     "as Credential; where the API takes both for one, as here, a send of the other's does no harm",
	"Operation":              "it says what Transport begins; what stands is an operation to each",
	"Instrument":             "it is told, and decides nothing",
	"OnResult":               "it gets what has been decided; what a record owes is frozen with it",
	"Observe":                "it is told, and decides nothing",
	"Logger":                 "it is told, and decides nothing",
	"KeepFields":             "they are not compared",
	"DropAnswer":             "it is about what is kept of an answer; nothing is decided by a member that it names",
	"MaxResponseHeaderBytes": "as MaxResponseBytes",
	"ResumeWorkers":          "it is the client's own pace",
	"KeepRequest":            "it is frozen in the record; nothing of another client's is read",
	"OriginWorkers":          "it is the client's own pace",
	"ResultWorkers":          "it is the client's own pace",
	"ClockSkew":              "it is a margin of who sends",
	"Lease":                  "a lease is in the record until it ends",
	"KeyHonoured":            "whether keys protect it is in the record; the API honours them here, so that another send does no harm",
	"BasePath":               "as KeyHonoured",
	"RequireKey":             "it refuses before anything is begun",
	"InsertKey":              "what it puts in stands in the record's own bytes; profiles/insert_test.go has clients that differ in it",
	"Profile/carrier":        "a send is made of the record alone (internal/request/send.go), which no profile is handed to",
	"Profile/in progress":    "a 409 leaves the operation open by either reading",
	"Profile/stored":         "Answer.Stored is in the record: as MaxResponseBytes",
	"Profile/minimum delay":  "it is a wait within one run",
	"Retry.MaxAttempts":      "as Retry.MaxPause",
	"Retry.MaxInFlight":      "it ends a run, and decides nothing else",
	"Retry.SafeAttempts":     "it is of requests that are no operation",
	"Retry.MaxElapsed":       "it ends a run, and decides nothing else",
	"Retry.AnswerTimeout":    "as Retry.AttemptTimeout",
	"KeepText":               "a repeat is refused with its text and without it, so that nothing shows when that went",
	"Retry.MinDelay":         "it is a wait within one run",
	"Retry.MaxRetryAfter":    "it ends a run; when the next begins is the server's word",
	"Retry.NeverAskAgain":    "as MaxResponseBytes",
	"Retry.AskFirst":         "with a key the second send is harmless, so that nothing shows whether it was asked before",
}

// TestEveryRowHasARule: each row of one difference has a rule whose absence it shows, a reason for having none, or waits for its rule.
func TestEveryRowHasARule(t *testing.T) {
	t.Parallel()
	held := map[string]bool{}
	for _, r := range rules() {
		for _, name := range r.rows {
			held[name] = true
			if _, found := rowNamed(name); !found {
				t.Errorf("the rule %q is of no row: %s", r.name, name)
			}
		}
	}
	for name := range rows() {
		if strings.Contains(name, " and ") {
			continue
		}
		n := 0
		for _, has := range []bool{held[name], noRule[name] != "", notYet[name] != ""} {
			if has {
				n++
			}
		}
		if n != 1 && (notYet[name] == "" || !held[name]) { // a rule whose row does not hold yet
			t.Errorf("%s: a rule %t, a reason %q, not yet %q; want one of them", name, held[name], noRule[name], notYet[name])
		}
	}
}

// root is the root of the module, from this folder.
const root = "../../.."

// overlay writes the file without the rule, and the list of replaced files.
func (r rule) overlay(dir string) (list string, err error) {
	files, err := filepath.Glob(filepath.Join(root, r.dir, "*.go"))
	replace, n := map[string]string{}, 0
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		found := strings.Count(string(text), r.old)
		if found == 0 || strings.HasSuffix(file, "_test.go") {
			continue
		}
		n += found
		path, absErr := filepath.Abs(file)
		replace[path] = filepath.Join(dir, "copy.go")
		err = errors.Join(err, absErr, os.WriteFile(replace[path], []byte(strings.Replace(string(text), r.old, r.new, 1)), 0o600))
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("the text of %q stands %d times in %s, want once; adapt rules to the source:\n%s", r.name, n, r.dir, r.old)
	}
	entries, jsonErr := json.Marshal(map[string]any{"Replace": replace})
	list = filepath.Join(dir, "overlay.json")
	return list, errors.Join(err, jsonErr, os.WriteFile(list, entries, 0o600))
}

// TestRuleTakenOut: without its rule a row fails. Without -bugs, which takes a build for each, it only looks whether the texts still
// stand where they are replaced.
func TestRuleTakenOut(t *testing.T) {
	t.Parallel()
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			list, err := r.overlay(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !*withBugs {
				return
			}
			binary := filepath.Join(dir, "company.test")
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
				t.Fatalf("go test -c: %v\n%s", err, out)
			}
			for _, name := range slices.Sorted(slices.Values(r.rows)) {
				out, err := exec.CommandContext(t.Context(), binary, "-test.run", "TestCompany$", "-row", name).CombinedOutput()
				if !strings.Contains(string(out), "--- FAIL: TestCompany/") && !strings.Contains(string(out), "panic: ") {
					t.Errorf("%s passes without the rule: %v", name, err)
					continue
				}
				t.Logf("%s: %d cells fail", name, strings.Count(string(out), "    --- FAIL: TestCompany/"))
			}
		})
	}
}
