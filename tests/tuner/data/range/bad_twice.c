// %RANGE% A a 1:4:1
// %RANGE% A a 1:8:1
void f(float* y) { y[0] = A; }
