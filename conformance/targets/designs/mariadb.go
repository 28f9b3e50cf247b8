package main

import (
	"database/sql"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariadb opens MariaDB with a database of this process, and makes the table.
func (e *env) mariadb(table string) (*sql.DB, error) {
	admin, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/test")
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if _, err := admin.Exec("CREATE DATABASE " + e.name); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/"+e.name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	db.SetConnMaxLifetime(time.Minute)
	e.closers = append(e.closers, func() error {
		_, err := db.Exec("DROP DATABASE " + e.name)
		return errors.Join(err, db.Close())
	})
	_, err = db.Exec(table)
	return db, err
}

// duplicate reports whether a UNIQUE constraint refused a row.
func duplicate(err error) bool {
	var refused *mysql.MySQLError
	return errors.As(err, &refused) && refused.Number == 1062
}
