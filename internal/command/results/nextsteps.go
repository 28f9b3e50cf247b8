package results

import (
	"fmt"
	"net/http"
	"time"
)

// This file holds the next step of each group of operations.

// afterWait returns the next step where the API asks for a wait, or a pause after failures lasts.
func (g Group) afterWait(due time.Time) string {
	fewer := ""
	if g.Status == http.StatusTooManyRequests {
		fewer = "the server wants fewer at a time (--rate); "
	}
	return fewer + "the first is due at " + due.UTC().Format(time.RFC3339) + ", as the API or the pause after failures has it: run the same command again then, or with a longer --max-retry-after, which waits"
}

// doubtsMax bounds the different doubts named by a summary, but for one line for the rest.
const doubtsMax = 5

const runAgain = "run the same command again"

func (g Group) nextStep(journal string, generation int) string {
	switch {
	case g.next == Done, g.next == Duplicate:
		return fmt.Sprintf("generation %d of them is %s: nothing more is to be sent for them", generation+1, g.next)
	case g.next == "" && g.was != "":
		return g.was
	case g.next != "":
		return fmt.Sprintf("generation %d of them is %s: go on with --generation %d", generation+1, g.next, generation+1)
	}
	switch {
	case g.first == 1:
		return fmt.Sprintf("run the command without --generation %d first", generation)
	case g.first > 1:
		return fmt.Sprintf("run the command with --generation %d first", g.first)
	}
	anew := ""
	if generation > 0 {
		anew = fmt.Sprintf("--generation %d tries anew", generation+1)
	}
	switch g.Result {
	case Duplicate:
		if g.Code == "held" {
			return "find out whose they are, and settle them; oncehttp journal stuck --journal " + journal
		}
	case Held:
		return "oncehttp journal stuck --journal " + journal
	case Declined:
		return anew
	case Accepted:
		return "the server took them on, and they may still fail: ask it what came of them; nothing more is sent for them"
	case Invalid:
		switch {
		case g.ofKey:
			return "the answers speak of the key: another request under it may have taken effect; find that out before any is sent under another key, and say what such an answer means in a profile file (mismatch: oncehttp profile new)"
		case anew == "":
		case g.Status == 404 || g.Status == 405:
			return "check --url; then, with the right one or corrected rows, " + anew
		default:
			return "correct the rows; then " + anew
		}
	case Mismatch:
		return "the key stands for other content; oncehttp journal show KEY --journal " + journal
	case Rejected:
		return g.afterRejected(anew)
	case Unknown:
		if g.Code == "abandoned" {
			return "nothing more is sent; oncehttp journal show KEY --journal " + journal
		}
		if g.Code == "answer_unread" {
			return "nothing more is sent; ask the API what came of them (oncehttp journal show KEY --journal " + journal + ")"
		}
		if g.Code == "bad_request" { // another call began it
			return "see the rows' messages; oncehttp journal resume --journal " + journal
		}
		return runAgain + g.afterSame(journal)
	}
	return ""
}

// afterSame is the next step if another run gets an answer again that settles nothing; "" if the rows' messages do not speak of it.
func (g Group) afterSame(journal string) string {
	if !g.unread {
		return ""
	}
	return "; where the same answer comes again, say what it means, as the rows' messages say, or ask the API what came of them, and settle each as oncehttp journal stuck lists it: oncehttp journal settle KEY@SEEN --absent, or --happened, --journal " +
		journal
}

// afterRejected is the next step after nothing happened.
func (g Group) afterRejected(anew string) string {
	switch {
	case g.Code == "settled":
		return anew
	case g.Code == "key_invalid", g.Code == "bad_request", g.Code == "body_too_large":
		return "correct the rows"
	case g.Status == http.StatusTooManyRequests:
		return "the server wants fewer at a time (--rate); " + runAgain
	case g.bare:
		return "a page or nothing was answered, as something in front of the API may; mend that, then " + runAgain
	case g.Status == 401, g.Status == 403, g.Status == 407:
		return "check the credentials (-H), " + runAgain
	}
	return runAgain
}
