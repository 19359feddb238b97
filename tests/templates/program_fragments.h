// Fragments of networks for the templates that serve any: one of each kind, with odd shapes.
#pragma once

namespace tuner::testing {

// What networks have between products, one of each kind.
inline constexpr const char* kFragments[] = {
    "in=float32[2,3,5,7] Relu(0)",
    "in=float32[1,17,3,3],float32[1,17,1,1] Sigmoid(1) Mul(0,2)",
    "in=float32[3,19],float32[19] Add(0,1) Clip(2,float32[](-0.25),float32[](0.5))",
    "in=float32[1,5,4,6],float32[1,2,4,6],float32[1,9,4,6] Concat(0,1,2){axis=1}",
    "in=float32[2,6,5],float32[2,6,3] Relu(0) Concat(2,1){axis=2}",
    "in=float32[2,21,4] Split:1/3(0,int64[3](5;9;7)){axis=1} Neg(1)",
    "in=float32[3,4,5,6] Transpose(0){perm=[2;0;3;1]}",
    "in=float32[1,8,3,5] DepthToSpace(0){blocksize=2,mode=\"DCR\"}",
    "in=float32[1,3,5,4] Pad(0,int64[8](0;0;1;2;0;0;2;1))",
    "in=float32[1,3,5,4] Pad(0,int64[8](0;0;1;2;0;0;2;1)){mode=\"reflect\"}",
    ("in=float32[1,3,5,4] "
     "Resize(0,_,float32[4](1;1;2;2)){coordinate_transformation_mode=\"asymmetric\",mode=\"nearest\","
     "nearest_mode=\"floor\"}"),
    "in=float32[1,3,5,4] Resize(0,_,float32[4](1;1;2;1.5)){mode=\"linear\"}",
    "in=float32[7,6],int64[5] Gather(0,1){axis=0}",
    "in=float32[4,9] Slice(0,int64[2](1;8),int64[2](4;-10),int64[2](0;1),int64[2](2;-3))",
    "in=bool[3,7],float32[3,7],float32[7] Where(0,1,2)",
    "in=float32[5,6],float32[5,6] Less(0,1)",
    "in=float32[5,6] Cast(0){to=\"int64\"}",
    "in=float32[2,3,10,10] ReduceMean(0,int64[2](2;3)){keepdims=0}",
    "in=float32[2,33,3] ReduceMax(0,int64[1](1))",
    "in=float32[37] ReduceSum(0,int64[1](0))",
    "in=float32[2,5,13] Softmax(0){axis=1}",
    "in=float32[2,5,13] Softmax(0){axis=2} Mul(1,float32[](2))",
    "in=float32[1,4,6,5],float32[4,3,3,2] ConvTranspose(0,1){strides=[2;1]}",
    "in=float32[1,6,5,5],float32[4,3,3,3] Conv(0,1){dilations=[1;2],group=2,pads=[1;1;1;1]} Relu(2)",
    "in=float32[1,2,4,5,3],float32[3,2,2,2,2] Conv(0,1)",
    "in=float32[2,1,4,5],float32[3,5,7] MatMul(0,1)",
    "in=float32[2,3,7,7] MaxPool(0){dilations=[2;2],kernel_shape=[2;2]}",
    "in=float32[1,6,4,4],float32[6],float32[6] InstanceNormalization(0,1,2)",
    "in=int32[4,6],int32[6] Add(0,1)",
    "in=float32[3,11] ArgMax(0){axis=1,keepdims=0}",
    "in=float32[3,5,4] CumSum(0,int64[](1))",
    "in=none Range(int64[](2),int64[](20),int64[](3))",
};

}  // namespace tuner::testing
