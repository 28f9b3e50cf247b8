package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// driftMeaning returns the fact of the profile that a kind of finding contradicts, its meaning for people, and whether it is a mere note. The last return is
// for driftOlderGone.
func driftMeaning(kind string, p *profile.Profile) (fact, means string, note bool) {
	switch kind {
	case driftReplayGone:
		return "replay", "a success was given again without the mark of a replay. Either the API has another mark now, or it acted twice: look for both at the provider", false
	case driftAnew:
		if len(p.Replay) == 0 {
			return "already_done", "a repeat was answered as a new request, not as already done: the API may have acted twice; look for both at the provider", false
		}
		return "window", "a repeat was answered without the mark of a replay, and a later one had it: the API did not know the key any more, or did not look at it, and may have acted twice; look for both at the provider", false
	case driftMismatch:
		return "mismatch", "another request under a used key was taken: the API did not know the key any more, or does not compare requests", false
	case driftInProgress:
		return "in_progress", "the answer was not the last word: a success under the same key followed. If it means in progress, the profile lacks it", false
	case driftKeptError:
		return "stored.server_error", "the profile says that an error is kept under its key, and a success under the same key followed: it was not kept, or something in front of the API gave it", false
	case driftOlderKnown:
		return "window", "the API knew the key longer than the profile says", true
	}
	return "window", "the API did not know the key any more, as the profile says", true
}

// tightenedSuffix ends the name of a profile made of another by drift.
const tightenedSuffix = "-tightened"

// tightened returns a copy of p, under another name, that is only more careful. After a repeat that may have acted, the window is shorter than the time of the
// repeat. After statuses found before a success an operation is held (a person decides). Errors that changed are no longer called kept.
func tightened(p *profile.Profile, found []DriftFinding, now time.Time) *profile.Profile {
	c := p.Clone()
	c.Name = p.Name[:min(len(p.Name), 64-len(tightenedSuffix))] + tightenedSuffix // names have 64 bytes at most
	for _, x := range found {
		source := profile.Source{
			Ref: "oncehttp profile drift", Date: now.UTC().Format(time.DateOnly), Confidence: profile.Assumed,
			Said: fmt.Sprintf("%s: %s until %s", x.Finding, words.Count(x.Operations, "operation"), x.Last.UTC().Format(time.DateOnly)),
		}
		switch x.Finding {
		case driftReplayGone, driftAnew, driftMismatch:
			shorten(c, x.within, source)
		case driftInProgress:
			hold(c, x.Status, source)
		case driftKeptError:
			c.Stored.ServerError = profile.Unknown
			if c.Stored.Success == profile.Unknown && len(c.Stored.Client) == 0 {
				delete(c.Sources, "Stored") // no fact is left for it
			}
		}
	}
	return c
}

// shorten makes the time for which the profile trusts a key shorter than within, after which a key was not known any more. profile.WindowCap bounds the trust
// in any key. source is noted as the reason.
func shorten(p *profile.Profile, within time.Duration, source profile.Source) {
	unit := time.Second
	if within <= 2*unit {
		unit = time.Millisecond
	}
	floor := max((within - 1).Truncate(unit), time.Millisecond) // less than within, also if that is round
	if floor = min(floor, profile.WindowCap); floor >= p.Window.Floor {
		return
	}
	p.Window, p.Sources["Window"] = profile.Window{Floor: floor, Published: profile.No}, source
	// A doubted statement of the window, of a weak source, is superseded.
	p.Doubted = slices.DeleteFunc(p.Doubted, func(s profile.Statement) bool { return s.Name == "window" })
}

// hold makes the profile conclude nothing from answers with a status, so that such operations are held (not sent again until a person decides). More specific facts
// of the profile still count. source is noted as the reason.
func hold(p *profile.Profile, status int, source profile.Source) {
	p.Unclear = append([]profile.Matcher{{Status: []int{status}}}, p.Unclear...) // first: those of weak sources come last
	if stated, said := p.Sources["Unclear"]; said && stated.Confidence != profile.Assumed {
		return // a fact names one source, and a stated one is worth more than this
	}
	p.Sources["Unclear"] = source
}

// changes lists the facts in which careful differs from p, each with its value in careful. The name of the profile does not count.
func changes(p, careful *profile.Profile) []string {
	values := map[string]string{}
	for _, s := range careful.Statements() {
		values[s.Name] = s.Text
	}
	var list []string
	for _, name := range careful.Differences(p) {
		if name != "name" {
			list = append(list, fmt.Sprintf("%s: %s", strings.ReplaceAll(name, "_", " "), values[name]))
		}
	}
	return list
}

// writeNew writes a new file. It is an error if there is one at path already.
func writeNew(path string, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists", path)
	}
	if err != nil {
		return words.Pathless(err)
	}
	_, err = f.Write(text)
	return words.Pathless(errors.Join(err, f.Close()))
}
