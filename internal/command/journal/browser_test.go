//go:build browser

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/chromium"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// The journal's page filters, draws what was tried, and fits a phone and a desk.
// Set REPORT_SHOTS to a folder to keep the pictures.
func TestBrowserJournalReport(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	held := persist.Record{
		ID: persist.ID{Key: "idemp:order:u1:o1"}, State: persist.StateHeld, HoldReason: persist.HoldStoredError, Created: at, MaybeSent: true,
		Method: "POST", Origin: "https://api.example.com:443", Target: "/payments?secret=1", Note: "asked <b>the bank</b>",
		History: []persist.Attempt{{At: at, Took: 30 * time.Second, Sent: true, Error: "no answer within Retry.AttemptTimeout"}, {At: at.Add(time.Minute), Took: time.Second, Status: 500, Sent: true}},
	}
	p := &reportPage{Journal: "payments.db", Now: at, Place: "/srv/payments.db", Filter: "--since 2h", ListRejected: "oncehttp journal stuck --rejected --journal /srv/payments.db", Stats: &Stats{Operations: 5, Rejected: 3}, Left: 2, Results: []resultCount{{Result: results.Done, N: 3}, {Result: results.Held, N: 1}, {Result: results.Unknown, N: 1}}}
	for i := range ageBuckets + 1 {
		p.Ages = append(p.Ages, ageBar{fmt.Sprint(i), i, i * 10})
	}
	p.add(rowOf(&held, nil, clock{}))
	done := held
	done.Key, done.State, done.HoldReason, done.Answer, done.Note = "idemp:order:u2:o2", persist.StateConfirmed, "", &persist.Answer{Status: 201}, ""
	p.add(rowOf(&done, nil, clock{}))
	pending := held
	pending.Account, pending.Key, pending.State, pending.HoldReason, pending.History, pending.Note = "shop 7", "-o3", persist.StatePending, "", nil, ""
	p.add(rowOf(&pending, nil, clock{}))
	p.addCommands(place.Place{Arg: "/srv/payments.db", Keys: "@seal.keys"})
	path := filepath.Join(t.TempDir(), "journal.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.write(f); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	c := chromium.Start(t)
	c.Open("file://" + path)
	const visible = `document.querySelectorAll('details.row:not([hidden])').length`
	c.Want(visible, "3")
	c.Eval(`document.querySelector('.chip.held').click()`)
	c.Want(visible, "1")
	c.Want(`document.querySelector('details.row:not([hidden]) code').textContent`, "idemp:order:u1:o1")
	c.Eval(`document.querySelector('.chip.held').click()`)
	c.Eval(`find.value = 'u2'; find.oninput()`)
	c.Want(`document.getElementById('shown').textContent`, `1 of 3 shown: with "u2"`)
	c.Eval(`find.value = ''; find.oninput(); document.querySelectorAll('details').forEach((d) => { d.open = true })`)
	c.Want(`document.querySelectorAll('.try').length`, "4")
	c.Want(`document.getElementById('left').textContent`, "The 3 worst are on this page; 2 more are not.")
	c.Want(`document.body.textContent.includes('asked <b>the bank</b>') && !document.body.textContent.includes('secret')`, "true")
	c.Want(`[...document.querySelectorAll('.chip')].map((e) => e.textContent).join(' ')`, "3done1 on this page 1held 1unknown")
	c.Want(`document.querySelector('h1+p').textContent.startsWith('Journal /srv/payments.db, what --since 2h selects: 5 operations, as of 2026-11-21T20:00:00Z. Beside these 3 had no effect, were forgotten, and are not done since (oncehttp journal stuck --rejected --journal /srv/payments.db).')`, "true")
	seen := session.SeenKey(&held)
	c.Want(`[...document.querySelectorAll('.commands code')].map((e) => e.textContent).join('\n')`, strings.Join([]string{
		"oncehttp journal show idemp:order:u1:o1 --journal /srv/payments.db --seal-key @seal.keys",
		"oncehttp journal settle " + seen + " --happened --journal /srv/payments.db --seal-key @seal.keys",
		"oncehttp journal settle " + seen + " --absent --journal /srv/payments.db --seal-key @seal.keys",
		"oncehttp journal show idemp:order:u2:o2 --journal /srv/payments.db --seal-key @seal.keys",
		"oncehttp journal show --account 'shop 7' --journal /srv/payments.db --seal-key @seal.keys -- -o3",
		"oncehttp journal resume --dry-run --account 'shop 7' --journal /srv/payments.db --seal-key @seal.keys -- -o3",
	}, "\n"))
	c.Eval(`navigator.clipboard && Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text }}}); document.querySelector('.copy').click()`)
	c.Want(`window.copied`, "oncehttp journal show idemp:order:u1:o1 --journal /srv/payments.db --seal-key @seal.keys")
	c.Want(`document.querySelector('.copy').textContent`, "Copied")
	c.Eval(`document.querySelectorAll('details').forEach((d) => { d.open = false }); document.querySelector('.chip.held').click(); dispatchEvent(new Event('beforeprint'))`)
	c.Want(`document.querySelectorAll('details[open]').length`, "1") // what is filtered
	c.Want(`document.getElementById('shown').textContent`, "1 of 3 shown: held")
	c.Eval(`dispatchEvent(new Event('afterprint')); document.querySelector('.chip.held').click()`)
	c.Want(`document.querySelectorAll('details[open]').length`, "0")
	c.Eval(`document.querySelector('details').open = true`)
	for _, width := range []int{1280, 390} {
		png := c.Picture(width, 900, false)
		c.Want(`document.documentElement.scrollWidth <= innerWidth`, "true")
		c.Want(`getComputedStyle(document.getElementById('heads')).display !== 'none'`, fmt.Sprint(width > 700))
		c.Want(`[...document.querySelectorAll('details[open] .axis i')].every((e) => e.getBoundingClientRect().width >= 2)`, "true")
		if dir := os.Getenv("REPORT_SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("journal-%d.png", width)), png, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	c.NoComplaints("journal.html")
}
