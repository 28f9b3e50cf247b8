package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// This file spells what a person may do about a doubt: what in the answer of a success speaks against it.

// DoubtText returns the text for the user about a success whose answer has something against it (the line's doubt); "" if there is no doubt. again is the command that
// finds the operation in the journal once more, such as "the same command".
func (l *Line) DoubtText(again string) string {
	if l.Doubt == "" || l.Result != Done && l.Result != Accepted {
		return ""
	}
	// The words for one operation: subject, object, one of them, none of them, the command to repeat, and a later one.
	return about{"it", "it", "one", "nothing", again, "a further request"}.advice("the answer has ", l.Doubt, l.doubtDropped())
}

// doubtText returns the line of a summary about n successes whose answers have something against them: a doubt, such as /status=declined, or what --done lacks in
// them.
func doubtText(n int, of doubted) string {
	if of.against != "" {
		return fmt.Sprintf("%d of the %s: the answer %s", n, of.result, of.against)
	}
	if of.doubt == furtherDoubts {
		return fmt.Sprintf("%d of the %s: doubts of other kinds, each named as \"doubt\" in the row's line; look whether these took effect", n, of.result)
	}
	// The words for several operations: subject, object, one of them, none of them, the command to repeat, and a later one.
	return about{"these", "them", "any", "none of them", "the same command", "a further file"}.advice(fmt.Sprintf("%d of the %s: the answer has ", n, of.result), of.doubt, of.dropped)
}

// about are the words for the operations that an advice is about: one of send, or those of a file.
type about struct {
	these, them string
	any         string // of them, or of others in their place
	none        string // is sent
	again       string // the command that finds them in the journal
	further     string // what is begun later
}

// advice returns the text of a message about a doubt: text, the doubt, and advice for the operations that have ended and for later ones. A doubt names what in an
// answer speaks against its success: noContent, a JSON pointer, or POINTER=VALUE. dropped: the journal keeps answers without that member. The
// fields of a are the words for these operations: "it" for one, "these" for many.
func (a about) advice(text, doubt string, dropped bool) string {
	said := doubt
	if strings.HasPrefix(doubt, "/") {
		said = words.Clip(doubt)
	}
	text += said
	look := "; look whether " + a.these + " took effect"
	countsThese := " with " + a.again + " counts " + a.these + " as declined, and sends " + a.none
	pointer, value, has := strings.Cut(doubt, "=")
	switch ofMember := strings.HasPrefix(pointer, "/"); {
	case dropped:
		return text + look + ": --drop-answer keeps that member out of the journal, where neither --declined nor --done can read it"
	case doubt == notKept:
		return text + look + "; --done would hold such answers, as it cannot look in them"
	case doubt == noContent:
		return text + ": only its status says that " + a.these + " took effect; look whether that is so; " + laterDone
	case ofMember && has && isInErrors(pointer):
		return text + look + "; if not, say so: --declined " + words.ShellQuote(doubt) + countsThese + "; " + laterDone
	case strings.HasPrefix(doubt, "<"), doubt == soapFault, strings.HasPrefix(doubt, textBegins): // no JSON, where a flag could look
		return text + look
	case !ofMember || !has:
		return text + look + "; " + laterDone
	case slices.ContainsFunc(wordsOf(value), isOpen):
		return text + ", which may still succeed: ask the API what came of " + a.them + " before " + a.any + " is sent under another key; " + a.further + " holds such answers with --done " +
			words.ShellQuote(pointer+"=TEXT") + " --unknown " + words.ShellQuote(doubt)
	}
	return text + "; if that is no success, say so: --declined " + words.ShellQuote(doubt) + countsThese + "; --done " + words.ShellQuote(pointer+"=TEXT") +
		" says what is one, of what is begun from then on"
}

// laterDone is the part of an advice about the effect of --done on later operations.
const laterDone = "--done /POINTER=TEXT counts only an answer with that text as done, of what is begun from then on"
