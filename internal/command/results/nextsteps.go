package results

import (
	"fmt"
	"net/http"
	"time"
)

// This file holds the next step of each group of operations.

// afterWait returns the next step for a group of rows that may be tried again only at due: the API asks for a wait, or a pause after failures lasts.
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

// giveAgain is the next step where a journal's operations, or its other clients, have credentials and this run has none.
const giveAgain = runAgain + ", with their credentials (-H)"

// checkCredentials is the next step after a 401, 403 or 407.
const checkCredentials = "check the credentials (-H), " + runAgain

// doneBefore is the next step of refusals that speak of the key, or of something that was done before: a new key could pay twice.
const doneBefore = "the answers speak of the key, or say that something was done before: another request, maybe of this row, may have taken effect; find that out before any is sent " +
	"under another key, and say what such an answer means (--already-done, or mismatch in a profile file: oncehttp profile new)"

// nextStep returns the next step for a group (rows with the same end) as a text for the user, "" if there is none. journal is the journal's name for a shell;
// generation is the number of the run's try (each has keys of its own), 0 of a command without tries. g.before: the refusals may say that the operation was
// done before. g.open: --declined takes an answer for a refusal that may still become a success.
func (g Group) nextStep(journal string, generation int) string {
	if step := g.beside(journal, generation); step != "" {
		return step
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
		if g.before && anew != "" {
			return doneBefore
		}
		if g.open && anew != "" {
			return "--declined names a word that leaves the end open, and these may still succeed: ask the API what came of them before any is sent under another key; " + anew
		}
		return anew
	case Accepted:
		return "the server took them on, and they may still fail: ask it what came of them; nothing more is sent for them"
	case Invalid:
		switch {
		case g.before:
			return doneBefore
		case anew == "":
		case g.Status == 404 || g.Status == 405:
			return "check --url; then, with the right one or corrected rows, " + anew
		default:
			return "correct the rows; then " + anew
		}
	case Mismatch:
		return g.afterMismatch(journal, anew)
	case Rejected:
		return g.afterRejected(anew)
	case Unknown:
		return g.afterUnknown(journal)
	}
	return ""
}

// afterMismatch returns the next step for rows with keys of other requests, by the state of those (g.stands). anew is the advice to try anew, "" if there is
// none. g.differ is the only part that differs in the requests, "" if there are others.
func (g Group) afterMismatch(journal, anew string) string {
	if g.stands == StandsRefused && anew != "" {
		return "the key stands for another request, which was refused for certain; " + anew
	}
	if g.stands == StandsHeld {
		return "the key stands for another request, which is held: oncehttp journal stuck --journal " + journal
	}
	if g.stands == StandsPending {
		return "the key stands for another request, which is pending, and with which this command does not go on: oncehttp journal resume --journal " + journal + " does; oncehttp journal show KEY --journal " + journal
	}
	return "the key stands for another request; oncehttp journal show KEY --journal " + journal + g.onlyOf(g.differ)
}

// onlyOf returns the end of the next step for rows whose keys stand for other requests, if only the named part differs in them: the flag that gives it. It returns
// "" for no such part.
func (g Group) onlyOf(part string) string {
	flag := "--url"
	switch part {
	case "":
		return ""
	case "the method":
		flag = "--method"
	case "a header":
		flag = "--header, --account or --profile"
	}
	return "; only " + part + " differs in them: what changes there from run to run makes another request of each row, so give " + flag + " as the first run had it"
}

// afterUnknown returns the next step for a group of rows in doubt, by the code and the status of their end, and for those whose answer was not looked through.
func (g Group) afterUnknown(journal string) string {
	if g.Code == "abandoned" {
		return "nothing more is sent; oncehttp journal show KEY --journal " + journal
	}
	if g.Code == CodeContradicted {
		return "an event of the API says that they happened, and their recorded end that they did not: nothing more is sent; ask the API what came of them; oncehttp journal show KEY --journal " + journal
	}
	if g.Code == CodeUnread {
		return "nothing more is sent; ask the API what came of them (oncehttp journal show KEY --journal " + journal + "); oncehttp journal declined --forget VALUE --journal " + journal + " counts them as done, and all else that a --declined with that VALUE alone made unknown or declined"
	}
	if g.Code == "bad_request" { // another call began it
		return "the rows' messages say what this run lacks: give it as the run that began them had it, and run the same command again"
	}
	if g.Code == CodeCredentials {
		return giveAgain
	}
	if g.Code == CodeDistrusted {
		return "they were begun under a profile by which the API knows their keys, and by this run's it does not: nothing is sent again; run them with --profile, --already-done and --lookup as the run that began them had these, if those are right; else look at the server, and settle each as oncehttp journal stuck lists it: oncehttp journal settle KEY@SEEN --absent, or --happened, --journal " + journal
	}
	if g.Code == codeNotAgain {
		return "nothing was sent again, as the rows' messages say; then " + runAgain
	}
	if g.Status == 401 || g.Status == 403 || g.Status == 407 {
		return checkCredentials + g.afterSame(journal)
	}
	return runAgain + g.afterSame(journal)
}

// beside returns the next step for a group of rows if something else than their own end tells it: another generation (a try under another key), what a person
// has begun in their place, or an earlier run; "" otherwise. g.next is the result of the latest later generation, with the number g.nextAt; g.first is the one
// to be run before that of this run; g.was is the step for rows told as done before a --declined; g.stands says whose request has the key.
func (g Group) beside(journal string, generation int) string {
	switch {
	case g.next == Done, g.next == Duplicate:
		return fmt.Sprintf("generation %d of them is %s: nothing more is to be sent for them", g.nextAt, g.next)
	case g.next == Declined, g.next == Invalid:
		return fmt.Sprintf("generation %d of them is %s, too: --generation %d tries anew", g.nextAt, g.next, g.nextAt+1)
	case g.next != "":
		return fmt.Sprintf("generation %d of them is %s: go on with --generation %d", g.nextAt, g.next, g.nextAt)
	case g.was != "":
		return g.was
	case g.first == 1:
		return fmt.Sprintf("run the command without --generation %d first", generation)
	case g.first > 1:
		return fmt.Sprintf("run the command with --generation %d first", g.first)
	case g.Code == "other_account":
		return "their keys stand there under another account, or under none, and may be the same business: run the command for that account, or give them to one (oncehttp journal assign KEY --account NAME --journal " + journal + "); nothing is sent beside them"
	case g.stands == StandsReplaced && g.Result == Unknown:
		return "other operations were begun in their place, and have not ended: oncehttp journal resume --journal " + journal + ", or a worker, goes on with those; nothing is to be sent for these rows"
	case g.stands == StandsReplaced:
		return "other operations were begun in their place (by journal rekey or redrive, or as a later generation): nothing is to be sent for these rows; what came of those: oncehttp journal show KEY --journal " + journal
	}
	return ""
}

// afterSame returns the next step if another run gets an answer again that settles nothing; "" if the rows' messages do not speak of it.
func (g Group) afterSame(journal string) string {
	kept := g.Status >= 500 && g.Status != http.StatusBadGateway && g.Status != http.StatusServiceUnavailable && g.Status != http.StatusGatewayTimeout
	if !g.unread && !kept { // unread: the rows' messages say that nobody has told the meaning of the answer; kept: an API may keep such an error under the key, and give it each time
		return ""
	}
	return "; where the same answer comes again, ask the API what came of them, and settle each as oncehttp journal stuck lists it: oncehttp journal settle KEY@SEEN --absent, or --happened, --journal " +
		journal
}

// afterRejected returns the next step for a group of rows for which nothing happened, so that they may be run again. anew is the advice to try them under a new key,
// "" if there is none.
func (g Group) afterRejected(anew string) string {
	switch {
	case g.Code == CodeSettled:
		return anew
	case g.Code == CodeCredentials:
		return giveAgain
	case g.Code == CodeEarlierRow:
		return "rows before them, with the same value of --ordered-by, have not ended: see what is said of those; then " + runAgain
	case g.Code == "key_invalid", g.Code == "bad_request", g.Code == "body_too_large":
		return "correct the rows"
	case g.Status == http.StatusTooManyRequests:
		return "the server wants fewer at a time (--rate); " + runAgain
	case g.bare:
		return "a page or nothing was answered, as something in front of the API may; mend that, then " + runAgain
	case g.Status == 401, g.Status == 403, g.Status == 407:
		return checkCredentials
	}
	return runAgain
}
