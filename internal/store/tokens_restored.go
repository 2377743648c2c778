package store

import (
	"context"
	"errors"
	"strings"

	"colophon/internal/access"
)

// RestoredTokensConfig is what RestoredTokens needs.
type RestoredTokensConfig struct {
	Engine interface {
		Engine
		Scan(ctx context.Context, table, prefix string, after Item) (Page, error)
	}
	Table string // the content table
}

func (c RestoredTokensConfig) validate() error {
	if c.Engine == nil || c.Table == "" {
		return errors.New("store: restored tokens need an engine and a table")
	}
	return nil
}

// RestoredTokens finds and deletes the tokens that a restore brought back, some
// of which were revoked since: those of another table, which nothing accepts any
// more, and those of builds that did not record a table, which would be accepted.
// It is for a table that was just restored. In one that was not, it would end
// whatever was made by such a build.
type RestoredTokens struct{ c RestoredTokensConfig }

// NewRestoredTokens makes RestoredTokens.
func NewRestoredTokens(c RestoredTokensConfig) (*RestoredTokens, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &RestoredTokens{c}, nil
}

// List returns them, in no order; damaged ones with what can be read of them.
func (r *RestoredTokens) List(ctx context.Context) ([]access.Token, error) {
	var tokens []access.Token
	err := r.each(ctx, func(key Key, item Item) error {
		if !strings.HasPrefix(key.PK, prefixToken) {
			return nil // its place in a list
		}
		t, _ := decodeToken(item)
		tokens = append(tokens, t)
		return nil
	})
	return tokens, err
}

// Delete deletes them, wherever they are stored, and returns how many there
// were. If it fails it can be called again.
func (r *RestoredTokens) Delete(ctx context.Context) (tokens int, err error) {
	err = r.each(ctx, func(key Key, _ Item) error {
		_, err := r.c.Engine.Write(ctx, Write{
			Table: r.c.Table, Key: key, Delete: true, If: Not(Equal(At(attrEpoch), Text(r.c.Table))),
		})
		if err == nil && strings.HasPrefix(key.PK, prefixToken) {
			tokens++
		}
		return contentFault("delete token", err)
	})
	return tokens, err
}

// each calls do for each item of a token that was not written to this table. It
// reads the table itself: a restore is not of one instant to the last item, so a
// token could be there without its place in a list.
func (r *RestoredTokens) each(ctx context.Context, do func(Key, Item) error) error {
	const ofTokens = "TOKEN" // begins both prefixToken and prefixTokenList
	for after := Item(nil); ; {
		page, err := r.c.Engine.Scan(ctx, r.c.Table, ofTokens, after)
		if err != nil {
			return contentFault("read tokens", err)
		}
		for _, item := range page.Items {
			a := &attributes{item: item}
			key := Key{PK: a.text(attrPK), SK: a.text(attrSK)}
			if a.optionalText(attrEpoch) == r.c.Table {
				continue
			}
			if err := do(key, item); err != nil {
				return err
			}
		}
		if after = page.Last; after == nil {
			return nil
		}
	}
}
