package words

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// GiveCredentials is the step of FlagWords where an operation lacks its credentials.
const GiveCredentials = "give them again with -H"

// FlagWords replaces the names of Go fields in the client's errors by names known to a user of the command. Where two of them begin alike, the longer one
// stands first, and so counts.
func FlagWords(text string) string {
	return strings.NewReplacer(
		"Retry.MaxAttempts", "--max-attempts", "Retry.MaxElapsed", "--max-elapsed", "Retry.AttemptTimeout", "--attempt-timeout",
		"Retry.AnswerTimeout", "the time for a whole answer", "Retry.MinDelay", "--min-delay", "Retry.MaxDelay", "--max-delay",
		"for this client's AttemptTimeout and ClockSkew; a client with shorter ones may send it", "for this --attempt-timeout; with a shorter one it may be sent",
		"Retry.MaxRetryAfter", "--max-retry-after", "Retry.MaxPause", "--max-pause", "; set Config.Authorize, and Config.Origins beside it, or", "; "+GiveCredentials+", or", "; set Config.Authorize", "; "+GiveCredentials,
		", or AcceptPlain of package persist/seal)", " @FILE)", "(package persist/seal)", "(--seal-key @FILE)",
		"Options.ListenURL", "--journal-direct", "ListenURL", "--journal-direct",
		": it is not among Config.Origins, and Config.OriginAllowed does not allow it", "; name it with --origin, or --auth",
		"it was begun with another credential than Config.Credential names", "it was begun with another --credential, or with none: give it as the run that began it had it",
		`, and Config.Region is "`, `: give --region as the run that began it had it; here it is "`,
		"Config.Region", "--region", "Config.Credential", "--credential",
		"what CredentialHash makes of the credential", "sha256: and the SHA-256 of the credential in hexadecimal digits",
		"Client.Assign", "oncehttp journal assign", " (Key.Generation)", "", "MaxRequestBytes", "what the command takes (10 MiB)", "EnqueueMaxAge", "its time",
		"put it there, or name it (DoKey, ContextWithKey) and set InsertKey", "put it there, or say --key and --insert-key",
		"put it there, or set InsertKey", "put it there, or say --insert-key",
		"name it (DoKey, ContextWithKey or KeyFromJSON), and InsertKey puts it there; a key that is made up for the call would make another request of it each time", "say --key, and --insert-key puts it there",
		"SecretHeaders or SecretParameters", "--secret-header", "DropAnswer", "--drop-answer", "KeyHonoured", "--key-honoured", "BasePath", "--base-path",
		"a RandomKey that is kept", "a random one beside each row", "Key.UUIDv4()", "--key-uuid4", "Key.UUID()", "--key-uuid",
	).Replace(secretWords(shapeWords(keyHeaderWords(otherFactsWords(naturalWords(text))))))
}

// OneLine returns the text of an error on one line, as the command prints it: with "oncehttp: " once at its start, and with flags in place of Go names.
func OneLine(err error) string {
	text := FlagWords(strings.Join(strings.Fields(err.Error()), " "))
	if what, last, has := strings.Cut(text, "last attempt: "); has {
		text = what + "last attempt: " + CauseWords(last)
	}
	return "oncehttp: " + strings.TrimPrefix(text, "oncehttp: ")
}

// KeyHeaderMark stands between a profile's name and the header. It is no character of a header's name (RFC 9110 section 5.6.2).
const KeyHeaderMark = "@"

// keyHeaderWords rewrites the client's error about a record whose profile it does not know, if the profile was made by --key-header: it names the flag to repeat. Any
// other text is returned as it is.
func keyHeaderWords(text string) string {
	before, rest, _ := strings.Cut(text, `profile "`)
	name, rest, _ := strings.Cut(rest, `" version "`)
	base, header, marked := strings.Cut(name, KeyHeaderMark)
	_, after, unknown := strings.Cut(rest, ", under which it was begun, is not known to this client")
	if !marked || !unknown {
		return text
	}
	if _, builtIn := profile.ByName(base); !builtIn {
		return before + fmt.Sprintf("it was begun with --key-header %s and the profile file of %q; give both again, or the file to oncehttp journal resume", header, base) + after
	}
	return before + "it was begun with --key-header " + header + "; say that again, or finish it with oncehttp journal resume" + after
}

var shortCall = regexp.MustCompile(`Key\.Short\((\d+)\)`)

// shapeWords replaces a call of Key.Short in the client's error by the flag --key-short.
func shapeWords(text string) string { return shortCall.ReplaceAllString(text, "--key-short $1") }

var secretIndex = regexp.MustCompile(`SecretHeaders\[(\d+)\]`)

// secretWords replaces SecretHeaders[i] in the client's error by the flag --secret-header and its number.
func secretWords(text string) string {
	return secretIndex.ReplaceAllStringFunc(text, func(element string) string {
		i, _ := strconv.Atoi(secretIndex.FindStringSubmatch(element)[1]) // it has digits only
		return fmt.Sprintf("--secret-header number %d", i+1)
	})
}

// Many APIs have no idempotency key, but take a business number only once: the second order 7 is answered 409 "duplicate order".
// --already-done gives the answers with this meaning, --lookup the place to find the order, --same the fields for recognizing it as the
// requested order.

// NaturalMark stands behind the name of a profile with additions by the flags. So a client without them sends nothing for its records.
const NaturalMark = "~already-done"

// DoneMark stands behind the name of a profile with the verdicts of --done. So a client without them sends nothing for its records.
const DoneMark = "~done"

// otherFactsWords rewrites the client's error about an operation begun under other rules for answers, if flags such as --done made them: it names the flags to repeat.
// Any other text is returned as it is.
func otherFactsWords(text string) string {
	before, rest, found := strings.Cut(text, `its profile "`)
	name, rest, _ := strings.Cut(rest, `", version "`)
	_, after, other := strings.Cut(rest, `, states other facts than the one under which the operation was begun; let a client of the same facts look, or settle it`)
	if !found || !other || !strings.Contains(name, NaturalMark) && !strings.Contains(name, DoneMark) {
		return text
	}
	return before + "the operation was begun with other values of --already-done, --lookup, --same, --done, --declined or --unknown: say those again, which reads its kept answer and looks nothing up, or settle it" + after
}

// naturalWords rewrites the client's error about a record whose profile it does not know, if the profile was made by --already-done or --done: it names the flags to
// repeat. Any other text is returned as it is.
func naturalWords(text string) string {
	before, rest, _ := strings.Cut(text, `profile "`)
	name, rest, _ := strings.Cut(rest, `" version "`)
	_, after, unknown := strings.Cut(rest, ", under which it was begun, is not known to this client")
	natural, done := strings.Contains(name, NaturalMark), strings.Contains(name, DoneMark)
	switch {
	case !unknown || !natural && !done:
		return text
	case natural && done:
		return before + "it was begun with --already-done and --done; say these again, with --lookup, --same, --declined and --unknown, to batch, send or journal resume" + after
	case done:
		return before + "it was begun with --done; say that, --declined and --unknown again, to batch, send or journal resume" + after
	}
	return before + "it was begun with --already-done; say that, --lookup and --same again, to batch, send or journal resume" + after
}
