package conformance

import "slices"

// The sources of the rules. Long quotes are in this package's own words.

const draftURL = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-"

// draft07 returns a section of the draft, which expired and is no RFC.
func draft07(section, quote string) Ref {
	return Ref{Name: "draft-07 §" + section, URL: draftURL + section, Quote: quote}
}

// rfc returns a section of an RFC.
func rfc(number, section, quote string) Ref {
	return Ref{
		Name: "RFC " + number + " §" + section, Quote: quote,
		URL: "https://www.rfc-editor.org/rfc/rfc" + number + "#section-" + section,
	}
}

// practice returns a habit of real APIs as a source, for points without a specification.
func practice(quote string) Ref { return Ref{Name: "field practice", Quote: quote} }

// invariant returns one of the suite's own rules as the source of a case. name is S1 to S5 or L1. A server that breaks one of them can lose money.
func invariant(name string) Ref {
	sentences := map[string]string{
		"S1": "At most one execution per scope, key and payload.",
		"S2": "No success for work that was not this request.",
		"S3": "No answer of another caller.",
		"S4": "A refused request has executed nothing.",
		"S5": "Requests without a key are never merged.",
		"L1": "After any fault the key resolves, by a replay or a fresh execution, within a bound.",
	}
	return Ref{Name: name, Quote: sentences[name]}
}

// outline returns an entry, T1 to T24, of the outline from which the list of cases began, as the source of a case.
func outline(id string) Ref {
	sentences := map[string]string{
		"T1":  "The first request is processed normally.",
		"T2":  "A sequential repeat of the same bytes has the same status and no further effect.",
		"T3":  "Of many concurrent requests with one key exactly one has an effect; the others conflict, or wait and replay.",
		"T4":  "The conflict answer itself is not stored: a repeat after completion replays the real result.",
		"T5":  "A different payload is refused (422, or as the profile says), with no further effect.",
		"T6":  "The same payload with its members in another order, or other white space: reported.",
		"T7":  "A missing key where one is required: 400, with a link.",
		"T8":  "Structured-field strings: quoted accepted, escapes handled, parameters ignored, two field lines refused.",
		"T8b": "Raw UUIDs that begin with a letter and with a digit get the same verdict.",
		"T9":  "A quoted key and the same key bare: the same key, or documented as different.",
		"T10": "Empty, overlong, non-ASCII keys and control bytes: 400, no effect.",
		"T11": "The same key of two callers: no leak, two effects.",
		"T12": "The same key at another endpoint or with another verb: as declared; never another type's body.",
		"T13": "A validation failure, then a corrected body under the same key: reported.",
		"T14": "A 5xx is stored, run again, or poisons the key; it never gives two effects.",
		"T15": "A client that disconnects, then repeats: one effect.",
		"T16": "A crash between effect and record, then a repeat: one effect, or an explicit unknown.",
		"T17": "Inside the window a replay; after it what is declared.",
		"T18": "Problem details are well formed, or there is a link; 409 carries Retry-After.",
		"T19": "401, 403 and 429 in front of the key layer do not consume the key.",
		"T20": "Where the store is out, the server fails closed (503), or open as declared.",
		"T21": "The replay mark is present, and on replays only.",
		"T22": "GET, HEAD, PUT and DELETE with a key: ignored, and no 4xx unless declared.",
		"T23": "A refreshed signature or nonce with the same key still replays.",
		"T24": "OASIS Repeatable Requests: result header, 412 outside the window, 400 on a mismatch.",
	}
	return Ref{Name: id, Quote: sentences[id]}
}

// The draft's sentences behind several cases.

// drafted21 returns section 2.1 of the draft as the source of a case: the syntax of the header.
func drafted21() Ref {
	return draft07("2.1", "Idempotency-Key is an Item Structured Header. Its value MUST be a String.")
}

// drafted22 returns section 2.2 of the draft as the source of a case: a key is for one request.
func drafted22() Ref {
	return draft07("2.2", "The key is unique and must not be reused with another request payload.")
}

// drafted26 returns section 2.6 of the draft as the source of a case: the answer to a repeat after the end.
func drafted26() Ref {
	return draft07("2.6", "A repeat after completion should be answered with the outcome of the earlier operation, success or error.")
}

// drafted26Conflict returns section 2.6 of the draft as the source of a case: the answer to a repeat during the work.
func drafted26Conflict() Ref {
	return draft07("2.6", "A repeat while the original is still being processed should be answered with a conflict error.")
}

// drafted27 returns section 2.7 of the draft as a source, with a quotation.
func drafted27(quote string) Ref { return draft07("2.7", quote) }

// draftedSecurity returns section 5 of the draft as the source of a case: its security considerations.
func draftedSecurity() Ref {
	return draft07("5", "Validate keys as per the published format before any work; a cache key may be the client's key together with what only the resource knows.")
}

// Cases returns all cases, in the order of a report. Each call returns a new slice.
func Cases() []Case {
	all := slices.Concat(replayCases(), replyCases(), otherRouteCases(), conflictCases(), equalityCases(), similarCases(), scopeCases(), methodCases(),
		inflightCases(), overlapCases(), keyCases(), spellingCases(), boundCases(), outcomeCases(), faultCases(),
		netCases(), framingCases(), timeCases(), restartCases(), soakCases(), oasisCases(), tokenCases())
	fixes := repairs()
	for i := range all {
		if all[i].Since == "" {
			all[i].Since = "1.0"
		}
		if all[i].Fix == "" {
			all[i].Fix = fixes[all[i].ID]
		}
	}
	return all
}
