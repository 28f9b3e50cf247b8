package persist

// HoldReason is the reason for the hold of a record.
type HoldReason string

// The reasons for holding a record.
const (
	HoldExpired     HoldReason = "expired"       // the server may have forgotten the key
	HoldStoredError HoldReason = "stored error"  // the server keeps an error under the key
	HoldRedirected  HoldReason = "redirected"    // the answer was a redirect, and was not followed
	HoldUnclear     HoldReason = "unclear"       // the meaning of the answer is not known well enough
	HoldUnread      HoldReason = "unread"        // other facts read the answer; a client with the record's facts that reads a success ends it
	HoldNoKey       HoldReason = "no key"        // no key protects the request: another send may take effect twice
	HoldDuplicate   HoldReason = "duplicate"     // a business reference of the request was used before, by whom is not known
	HoldMismatch    HoldReason = "mismatch"      // the key belongs to another request, after an unknown outcome
	HoldRestored    HoldReason = "restored"      // the journal was restored, or lost records: the sends since are not known
	HoldUndo        HoldReason = "undo"          // abandoning it with Undo is under way, or failed; only an operator ends it: do it again
	HoldRekey       HoldReason = "rekey"         // a Rekey of it, or the Rekey that began it, is not finished; only the same Rekey goes on
	HoldRekeyHeld   HoldReason = "rekey of held" // as HoldRekey, of a record held before, or its journal was restored since: not sent again
	HoldReopened    HoldReason = "reopened"      // a person took its settlement back; only a person ends it
	HoldPredecessor HoldReason = "predecessor"   // an event proves the operation in whose place it stands, or another one stands there, too
	HoldCaller      HoldReason = "caller"        // a plain-HTTP caller was shown the answer and decides
)

// HoldReasons returns all reasons for which this version holds an operation: nothing is sent for it until somebody settles it. A table of counts, such as one
// for metrics, can have an entry for each. A journal can have further ones, of a later version.
func HoldReasons() []HoldReason {
	return []HoldReason{
		HoldExpired, HoldStoredError, HoldRedirected, HoldUnclear, HoldUnread, HoldNoKey, HoldDuplicate, HoldMismatch, HoldRestored, HoldUndo, HoldRekey,
		HoldRekeyHeld, HoldReopened, HoldPredecessor, HoldCaller,
	}
}
