package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
)

// billNumber returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: the business's own number of a bill is
// the token; here it comes in the key's header. The design looks the number up, and answers "already done" if the bill is there.
//
// Repair: the number is UNIQUE. The row is inserted first, in the transaction of the work, and a violation is answered from the stored bill.
func billNumber(e *env) (handler, error) {
	unique := ""
	if e.repaired {
		unique = ", UNIQUE (caller, number)"
	}
	db, err := e.mariadb(`CREATE TABLE bill (id INT AUTO_INCREMENT PRIMARY KEY, caller VARBINARY(200) NOT NULL, number VARBINARY(255) NOT NULL,
		amount INT NOT NULL, hash CHAR(64) NOT NULL, answer TEXT` + unique + `)`)
	return func(c *call) answer {
		if c.key == "" || len(c.key) > 255 {
			return problem(http.StatusBadRequest, "the bill has no number, or one that is too long")
		}
		bill := readThenInsert
		if e.repaired {
			bill = insertFirst
		}
		a, err := bill(c, db)
		if err != nil {
			return problem(http.StatusServiceUnavailable, "the database refused")
		}
		return a
	}, err
}

// readThenInsert is the faulty design, as it is taught: two requests at once both find no row, and both work.
func readThenInsert(c *call, db *sql.DB) (answer, error) {
	ctx := c.Context()
	var id int
	err := db.QueryRowContext(ctx, "SELECT id FROM bill WHERE number = ? LIMIT 1", c.key).Scan(&id)
	if err == nil {
		return message(http.StatusOK, "already done"), nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return answer{}, err
	}
	a := c.work()
	if a.Status < 400 {
		_, err = db.ExecContext(ctx, "INSERT INTO bill (caller, number, amount, hash) VALUES (?, ?, ?, '')", c.caller, c.key, c.amount)
		return a, err
	}
	return a, nil
}

// insertFirst is the repaired design: the row is inserted before the work. A failure of the work rolls the row back, so that the number may be used
// again.
func insertFirst(c *call, db *sql.DB) (a answer, err error) {
	ctx := context.WithoutCancel(c.Context())
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return a, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	_, err = tx.ExecContext(ctx, "INSERT INTO bill (caller, number, amount, hash) VALUES (?, ?, ?, ?)", c.caller, c.key, c.amount, c.hash())
	if duplicate(err) {
		if err := tx.Rollback(); err != nil { // else its connection is kept while another is waited for
			return a, err
		}
		return existingBill(c, db)
	}
	if err != nil {
		return a, err
	}
	if a = c.work(); a.Status >= 500 || a.Status == http.StatusTooManyRequests { // not committed: the number is free
		return a, nil
	}
	form, err := json.Marshal(a)
	if err != nil {
		return a, err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE bill SET answer = ? WHERE caller = ? AND number = ?", string(form), c.caller, c.key); err != nil {
		return a, err
	}
	return a, tx.Commit()
}

// existingBill returns the answer to a request whose number is taken: the stored answer, a refusal if it is another bill, or 409 (come again later)
// if the first was rolled back meanwhile.
func existingBill(c *call, db *sql.DB) (a answer, err error) {
	var hash, form string
	err = db.QueryRowContext(c.Context(), "SELECT hash, answer FROM bill WHERE caller = ? AND number = ?", c.caller, c.key).Scan(&hash, &form)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return wait(), nil // it was rolled back in between
	case err != nil:
		return a, err
	case hash != c.hash():
		return problem(http.StatusUnprocessableEntity, "the number belongs to another bill"), nil
	}
	err = json.Unmarshal([]byte(form), &a)
	return replay(a), err
}
