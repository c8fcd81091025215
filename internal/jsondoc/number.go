package jsondoc

import (
	"math/big"
	"strconv"
	"strings"
)

// plainDigits is how long a number written without exponent may get (§3.2).
const plainDigits = 400

// decimal is a number by value: sign, digits without outer zeros, and the power of ten they are taken
// times. Zero has no digits. far holds the power where an int64 can't.
type decimal struct {
	negative bool
	digits   string
	power    int64
	far      *big.Int
}

// decimalOf reads a number's literal. Anything can be written after the e, so nothing is expanded here.
func decimalOf(literal string) decimal {
	var d decimal
	mantissa, exponent := literal, ""
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], strings.TrimPrefix(literal[i+1:], "+")
	}
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	fraction = strings.TrimRight(fraction, "0")
	d.digits = whole
	if fraction != "" {
		d.digits = whole + fraction
	}
	d.digits = strings.TrimLeft(d.digits, "0")
	length := len(d.digits)
	d.digits = strings.TrimRight(d.digits, "0")
	shift := int64(length - len(d.digits) - len(fraction))
	if d.digits == "" {
		return decimal{}
	}
	if exponent == "" {
		d.power = shift
		return d
	}
	if e, err := strconv.ParseInt(exponent, 10, 64); err == nil && e > -1<<60 && e < 1<<60 {
		d.power = e + shift
		return d
	}
	e, ok := new(big.Int).SetString(exponent, 10)
	if !ok {
		e = new(big.Int) // not a JSON number; the parser lets none through
	}
	if d.far = e.Add(e, big.NewInt(shift)); d.far.IsInt64() {
		d.power, d.far = d.far.Int64(), nil
	}
	return d
}

func (d decimal) equal(o decimal) bool {
	if d.negative != o.negative || d.digits != o.digits || (d.far == nil) != (o.far == nil) {
		return false
	}
	if d.far != nil {
		return d.far.Cmp(o.far) == 0
	}
	return d.power == o.power
}

// plain says whether the number has a plain form of a sane length.
func (d decimal) plain() bool {
	n := int64(len(d.digits))
	return d.far == nil && n <= plainDigits && d.power <= plainDigits-n && d.power >= -plainDigits
}

// append writes the value in the one form that it has here: plain, or digits with a power of ten.
func (d decimal) append(dst []byte) []byte {
	if d.digits == "" {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	if !d.plain() {
		dst = append(append(dst, d.digits...), 'e')
		if d.far != nil {
			return d.far.Append(dst, 10)
		}
		return strconv.AppendInt(dst, d.power, 10)
	}
	point := len(d.digits) + int(d.power)
	switch {
	case d.power >= 0:
		dst = append(dst, d.digits...)
		return append(dst, strings.Repeat("0", int(d.power))...)
	case point > 0:
		dst = append(dst, d.digits[:point]...)
		return append(append(dst, '.'), d.digits[point:]...)
	default:
		dst = append(append(dst, "0."...), strings.Repeat("0", -point)...)
		return append(dst, d.digits...)
	}
}

// Integer says whether the literal's value is a whole number: 1, 1.0 and 1e2 are (§3.2).
func Integer(literal string) bool {
	d := decimalOf(literal)
	if d.far != nil {
		return d.far.Sign() > 0
	}
	return d.power >= 0
}

// Written is how a number is shown and handed to programs: as it was written, but without exponent where
// that is exact and of a sane length, and without a fraction of zeros alone: 1.50 stays 1.50, 1.0 is 1, 1e2 is
// 100 (§3.2).
func Written(literal string) string {
	if strings.ContainsAny(literal, "eE") {
		return Plain(literal)
	}
	if whole, fraction, ok := strings.Cut(literal, "."); ok && strings.Trim(fraction, "0") == "" {
		return whole
	}
	return literal
}

// Plain writes the number without exponent, exactly and without needless zeros: 1.0 is 1, 1e2 is 100
// (§3.2). A number that would need more than 400 digits keeps its literal.
func Plain(literal string) string {
	if simpleInteger(literal) {
		return literal
	}
	if d := decimalOf(literal); d.plain() {
		return string(d.append(nil))
	}
	return literal
}

// simpleInteger says whether the literal is already the plain form, as most are.
func simpleInteger(literal string) bool {
	return literal != "-0" && len(literal) <= plainDigits && strings.IndexFunc(literal, func(r rune) bool { return r != '-' && (r < '0' || r > '9') }) < 0
}

// Compare orders two numbers by value, exactly: -1, 0 or 1.
func Compare(a, b string) int {
	if simpleInteger(a) && simpleInteger(b) {
		return compareIntegers(a, b)
	}
	x, y := decimalOf(a), decimalOf(b)
	if x.sign() != y.sign() {
		return big.NewInt(int64(x.sign())).Cmp(big.NewInt(int64(y.sign())))
	}
	order := x.magnitude(y)
	if x.negative {
		return -order
	}
	return order
}

// compareIntegers orders whole numbers without leading zeros by length, then by digits.
func compareIntegers(a, b string) int {
	x, xNegative := strings.CutPrefix(a, "-")
	y, yNegative := strings.CutPrefix(b, "-")
	if xNegative != yNegative {
		if xNegative {
			return -1
		}
		return 1
	}
	order := len(x) - len(y)
	if order == 0 {
		order = strings.Compare(x, y)
	}
	switch {
	case order == 0:
		return 0
	case order > 0 != xNegative:
		return 1
	default:
		return -1
	}
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// magnitude compares without regard to the sign: first by the place of the highest digit, then by digits.
func (d decimal) magnitude(o decimal) int {
	if order := d.top().Cmp(o.top()); order != 0 {
		return order
	}
	return strings.Compare(d.digits, o.digits)
}

// top is the place of the highest digit.
func (d decimal) top() *big.Int {
	return new(big.Int).Add(d.tens(), big.NewInt(int64(len(d.digits))))
}

// tens is the power of ten.
func (d decimal) tens() *big.Int {
	if d.far != nil {
		return d.far
	}
	return big.NewInt(d.power)
}

// MultipleOf says whether a is a whole multiple of b, exactly. Digits have no outer zeros, so a smaller
// power of ten than b's can't be a multiple; a far greater one brings in no new factor.
func MultipleOf(a, b string) bool {
	x, y := decimalOf(a), decimalOf(b)
	if y.digits == "" || x.digits == "" {
		return y.digits != ""
	}
	shift := new(big.Int).Sub(x.tens(), y.tens())
	if shift.Sign() < 0 {
		return false
	}
	if widest := big.NewInt(int64(4*len(y.digits) + 4)); shift.Cmp(widest) > 0 {
		shift = widest
	}
	p, ok := new(big.Int).SetString(x.digits, 10)
	q, okq := new(big.Int).SetString(y.digits, 10)
	if !ok || !okq {
		return false
	}
	p.Mul(p, new(big.Int).Exp(big.NewInt(10), shift, nil))
	return p.Rem(p, q).Sign() == 0
}
