package operation

// counts holds the counts of a drive.
type counts struct {
	attempts  int
	sends     int
	inFlight  int    // answers that said "still being processed"
	said      uint64 // what the latest error says, see Sent.Error
	equal     int    // how often in a row
	unreached bool   // the latest attempt found no server
	reached   bool   // something was sent, if only a request for a token
	source    bool   // the source of the credentials was asked once more
}

// Attempts returns the number of attempts so far.
func (c *counts) Attempts() int { return c.attempts }

// Sends returns the number of sends so far, those of lookups among them.
func (c *counts) Sends() int { return c.sends }

// Errors returns the number of equal errors (500) of the API in a row. The API may keep such an error under the key, and give it to each send.
func (c *counts) Errors() int { return c.equal }

// Reached reports whether something was sent, if only a request for a token.
func (c *counts) Reached() bool { return c.reached }

// noteError counts equal errors (500) in a row: the API may keep one under the key, and give it to each send. said identifies it; zero: none. (Invariant 48.)
func (c *counts) noteError(said uint64) {
	if said != c.said {
		c.said, c.equal = said, 0
	}
	if said != 0 {
		c.equal++
	}
}
