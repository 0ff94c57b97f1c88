package workflow

import "time"

// valueType is the type of an expression, known when it is checked. Any is for
// what lists and maps hold; its operations are checked as they run.
type valueType string

const (
	anyType      valueType = "any"
	nullType     valueType = "null"
	boolType     valueType = "boolean"
	intType      valueType = "integer"
	numberType   valueType = "number"
	stringType   valueType = "string"
	timeType     valueType = "time"
	durationType valueType = "duration"
	listType     valueType = "list"
	mapType      valueType = "map"
)

// valueTypeOf is the expression type of a declared data item.
func valueTypeOf(t DataType) valueType {
	switch t {
	case TypeFile:
		return stringType
	case TypeQuery:
		return listType
	case anyData:
		return anyType
	}
	return valueType(t)
}

// a names the type with its article, for messages.
func (t valueType) a() string {
	if t == intType || t == anyType {
		return "an " + string(t)
	}
	return "a " + string(t)
}

// a names the type with its article, for messages.
func (t DataType) a() string { return valueType(t).a() }

func (t valueType) numeric() bool { return t == intType || t == numberType }

// open reports whether only running will show what it is.
func (t valueType) open() bool { return t == anyType || t == nullType }

// comparable reports whether values of the two types may be equal.
func (t valueType) comparable(u valueType) bool {
	return t == u || t.open() || u.open() || t.numeric() && u.numeric()
}

// typeOf is the type of a value inside the evaluator.
func typeOf(v any) valueType {
	switch v.(type) {
	case nil:
		return nullType
	case bool:
		return boolType
	case int64:
		return intType
	case float64:
		return numberType
	case string:
		return stringType
	case time.Time:
		return timeType
	case time.Duration:
		return durationType
	case []any:
		return listType
	case map[string]any:
		return mapType
	}
	return anyType
}
