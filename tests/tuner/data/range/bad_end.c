/* %RANGE% A a 8:4:1 */
void f(float* y) { y[0] = A; }
