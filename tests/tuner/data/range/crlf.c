// %RANGE% A a 1:4:1
// %RANGE% B b 0:0:1
void f(double* y) { y[0] = A + B; }
